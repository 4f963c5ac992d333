import pytest

from dre_jax.errors import DataError


def test_a_refusal_is_one_line(part, capsys):
    with pytest.raises(SystemExit, match="2"), part("one_line").errors_in_one_line():
        raise DataError("a rule, but this was given")
    assert capsys.readouterr().err.endswith(": a rule, but this was given\n")


def test_a_defect_of_ours_keeps_its_traceback(part):
    with pytest.raises(KeyError), part("one_line").errors_in_one_line():
        raise KeyError("x")


@pytest.mark.parametrize("script", ["compare_methods", "reproduce_published"])
def test_out_is_a_file(part, script, tmp_path, capsys, monkeypatch):
    taken = tmp_path / "taken"
    taken.touch()
    more = ["--traces", str(tmp_path)] if script == "reproduce_published" else []
    monkeypatch.setattr("sys.argv", [script, *more, "--out", str(taken)])
    with pytest.raises(SystemExit, match="2"), part("one_line").errors_in_one_line():
        part(script).main()
    assert "taken" in capsys.readouterr().err.splitlines()[-1]
