import pytest

from dre_jax.errors import DataError


def test_a_refusal_is_one_line(part, capsys):
    with pytest.raises(SystemExit, match="2"), part("one_line").errors_in_one_line():
        raise DataError("a rule, but this was given")
    assert capsys.readouterr().err.endswith(": a rule, but this was given\n")


def test_a_defect_of_ours_keeps_its_traceback(part):
    with pytest.raises(KeyError), part("one_line").errors_in_one_line():
        raise KeyError("x")
