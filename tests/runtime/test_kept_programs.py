"""Compiled programs that later processes load: the same values, without tracing, and never those of another program."""

import pickle
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.losses import LOSSES
from dre_jax.methods.dre.backends import BACKENDS
from dre_jax.runtime.kept_programs import KeptPrograms, describe
from dre_jax.runtime.progress import show_reports
from dre_jax.runtime.reports import listening, report_progress, report_result, say_reports
from dre_jax.search.acquisition import ACQUISITIONS, Acquisition, register_acquisition
from dre_jax.suggest.candidates import CandidateConfig
from tests.processes import run_python


class Pair(NamedTuple):
    first: jax.Array
    second: jax.Array


@pytest.fixture
def make():
    """Returns a function that makes a `KeptPrograms`, as a new process would, and the list of what it traced."""
    traced = []

    def new():
        def power(x, y, exponent, scale=None):  # another function, as JAX remembers what it has traced
            traced.append(exponent)
            total = x.first**exponent + jnp.linalg.cholesky(x.second) @ y
            return Pair(total, jax.random.normal(jax.random.key(0)) if scale is None else total * scale)

        power.__module__, power.__qualname__ = "dre_jax.test", "power"
        return KeptPrograms(jax.jit(power, static_argnames="exponent"), power, ("exponent",))

    return new, traced


ARRAYS = Pair(jnp.arange(3.0), jnp.eye(3)), np.ones(3, np.float32)


def test_a_second_process_traces_nothing(make, tmp_path):
    new, traced = make
    first, second = new(), new()
    for programs in (first, second, second):
        np.testing.assert_array_equal(programs(tmp_path, *ARRAYS, 2).first, [1.0, 2.0, 5.0])
    assert traced == [2]
    assert isinstance(second(tmp_path, *ARRAYS, exponent=2), Pair)


@pytest.mark.slow
def test_a_process_with_several_devices_loads_what_it_kept(tmp_path):
    code = """
import sys; from pathlib import Path; import jax, numpy as np
jax.config.update("jax_num_cpu_devices", 3)
from dre_jax.runtime.kept_programs import KeptPrograms
def double(x): return 2 * x
double.__module__, double.__qualname__ = "dre_jax.test", "double"
programs = KeptPrograms(jax.jit(double), double, ())
print(len(jax.devices()), programs(Path(sys.argv[1]), np.ones(2, np.float32)).tolist())
"""
    assert [run_python(code, tmp_path).stdout for _ in range(2)] == ["3 [2.0, 2.0]\n"] * 2
    assert len(list(tmp_path.rglob("*"))) == 2  # the folder and one program


def test_shapes_begin_the_compilation_that_a_call_waits_for(make, tmp_path):
    new, traced = make
    first, second = new(), new()
    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), ARRAYS)
    with jax.enable_x64(True):
        assert new()(tmp_path, *shapes, 2).first.dtype == np.float32
    for programs in (first, second):  # the second loads
        ahead = programs(tmp_path, *shapes, 2)
        result = programs(tmp_path, *ARRAYS, 2)
        assert jax.tree.map(lambda a: (a.shape, a.dtype, a.weak_type), ahead) == jax.tree.map(
            lambda a: (a.shape, a.dtype, a.weak_type), result
        )
        np.testing.assert_array_equal(result.first, [1.0, 2.0, 5.0])
        assert len(programs.programs) == 1
    assert traced == [2, 2]


def test_other_arguments_are_other_programs(make, tmp_path):
    new, traced = make
    new()(tmp_path, *ARRAYS, 2)
    pair, y = ARRAYS
    for arguments in (
        (pair, y, 3),
        (pair, y, 2, np.float32(2.0)),
        (Pair(jnp.ones(2), jnp.eye(2)), np.ones(2, np.float32), 2),
    ):
        n = len(traced)
        expected = new()._jitted(*arguments)
        np.testing.assert_array_equal(new()(tmp_path, *arguments).first, expected.first)
        assert len(traced) == n + 2
    assert len(list((tmp_path / "programs").iterdir())) == 4


def test_a_damaged_file_is_replaced(make, tmp_path):
    new, traced = make
    new()(tmp_path, *ARRAYS, 2)
    (file,) = (tmp_path / "programs").iterdir()
    file.write_bytes(b"damaged")
    np.testing.assert_array_equal(new()(tmp_path, *ARRAYS, 2).first, [1.0, 2.0, 5.0])
    new()(tmp_path, *ARRAYS, 2)
    assert traced == [2, 2]


def test_a_program_that_cannot_be_loaded_is_compiled(make, tmp_path):
    """Also in another thread, in the precision of the first."""
    new, traced = make
    with jax.enable_x64(True):
        new()(tmp_path, *ARRAYS, 2)
        (file,) = (tmp_path / "programs").iterdir()
        _, *rest = pickle.loads(file.read_bytes())
        file.write_bytes(pickle.dumps((b"damaged", *rest)))
        programs = new()
        programs(tmp_path, *jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), ARRAYS), 2)
        result = programs(tmp_path, *ARRAYS, 2)
    np.testing.assert_array_equal(result.first, [1.0, 2.0, 5.0])
    assert result.second.dtype == np.float64
    assert traced == [2, 2]


def test_a_program_of_another_user_is_not_run(make, tmp_path, monkeypatch):
    new, traced = make
    new()(tmp_path, *ARRAYS, 2)
    monkeypatch.setattr("os.getuid", lambda: -1)
    new()(tmp_path, *ARRAYS, 2)
    assert traced == [2, 2]


@pytest.mark.parametrize("module", ["mine", "dre_jax.test"])
def test_functions_that_a_name_cannot_tell_apart_are_not_kept(tmp_path, module):
    def add(x, constant):
        return x + 1

    add.__module__ = module  # that of the library is a function inside of another one
    KeptPrograms(jax.jit(add, static_argnames="constant"), add, ("constant",))(tmp_path, jnp.ones(2), 1)
    assert not list(tmp_path.iterdir())


def test_nothing_is_kept_that_may_depend_on_a_function_from_outside(make, tmp_path, registries):
    """Its name stays where its file is edited: a later process would get the program of before."""
    theirs = Acquisition(lambda config, mean, deviation, incumbent: -mean, scale="linear")
    additions = (
        lambda: register_acquisition("theirs", theirs),
        lambda: LOSSES.update(theirs=LOSSES["listmle"]),
        lambda: BACKENDS.insert(0, BACKENDS[0]),
    )
    new, traced = make
    for add in additions:
        add()
        for programs in (new(), new()):
            np.testing.assert_array_equal(programs(tmp_path, *ARRAYS, 2).first, [1.0, 2.0, 5.0])
        assert traced == [2, 2]
        traced.clear()
        ACQUISITIONS.pop("theirs", None)
        LOSSES.pop("theirs", None)
        del BACKENDS[:-2]
    new()(tmp_path, *ARRAYS, 2)
    new()(tmp_path, *ARRAYS, 2)
    assert traced == [2]  # kept again: none is left


def test_settings_are_part_of_the_name(make, tmp_path):
    new, traced = make
    new()(tmp_path, *ARRAYS, 2)
    with jax.enable_x64(True):
        new()(tmp_path, *ARRAYS, 2)
    assert traced == [2, 2]


def test_descriptions_of_static_arguments():
    """Deny by default: a value of an unknown class could hide what a program depends on."""
    one, other = CandidateConfig(even=256), CandidateConfig(even=512)
    assert describe((one, 1, np.float32)) == describe((CandidateConfig(even=256), 1, np.dtype("float32")))
    assert len({describe(value) for value in (one, other, 1, 1.0, True, "1", (1,), {"a": 1}, None)}) == 9
    for value in (object(), lambda x: x, np.ones(2), Pair(ARRAYS[1], ARRAYS[1]), {1: {2}}):
        with pytest.raises(TypeError, match="no description of"):
            describe(value)


def test_who_waits_for_the_compiler_is_told_once(tmp_path, capsys):
    def power(x, exponent):
        return x**exponent

    power.__module__, power.__qualname__ = "dre_jax.test", "power"
    for _ in range(2):
        with say_reports():
            KeptPrograms(jax.jit(power, static_argnames="exponent"), power, ("exponent",), "powers")(
                tmp_path, jnp.ones(2), 2
            )
    line = "dre_jax: compiling powers, which takes seconds and is kept for later processes\n"
    assert capsys.readouterr() == ("", line)


def test_stages_are_said_where_there_is_no_terminal(capsys):
    def work():
        report_progress("compiling")
        report_progress("training, step", 5)  # within ten seconds
        report_result("the result")

    with show_reports():
        work()
    with show_reports(quiet=True):
        work()
    with listening(lambda _: None), say_reports():
        work()
    assert capsys.readouterr() == ("", "dre_jax: compiling\ndre_jax: the result\n")
