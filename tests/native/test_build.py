"""The library is built once, tried, and kept; where it cannot be used XLA does it all, and a warning says why."""

import logging
import os

import pytest

from dre_jax import native
from dre_jax.methods.dre.backends.provenance import backend
from dre_jax.native import trial
from tests.processes import run_python

needs_compiler = pytest.mark.skipif(not native.available(), reason="no C++ compiler on this machine")

PROGRAM = """
import jax, jax.numpy as jnp
from dre_jax import native
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.model.ensemble import init
from dre_jax.methods.dre.training_config import FineTuneConfig
from dre_jax.methods.dre.fine_tuning import fine_tune
model, key = ModelConfig(members=1, hidden=(4,), phi=(4,), rho=(4,)), jax.random.key(0)
history = jnp.eye(4), jnp.linspace(1.0, 0.0, 4), jnp.arange(4), jnp.ones(4, bool)
tune = jax.jit(fine_tune, static_argnums=(0, 1))
tuned = tune(model, FineTuneConfig(epochs=2), init(model, 4, key), *history, key)
print(native.available(), bool(jnp.isfinite(tuned.scorers["out_kernel"]).all()))
"""


@needs_compiler
@pytest.mark.multiprocess
@pytest.mark.thorough
def test_the_library_is_cached(tmp_path):
    for _ in range(2):
        assert run_python(PROGRAM, DRE_JAX_CACHE=str(tmp_path)).stdout == "True True\n"
        selected = list(tmp_path.glob("native-*"))
        assert len(selected) == 1
        os.utime(selected[0], (1e9, 1e9))
    assert selected[0].stat().st_mtime == 1e9, "built again"


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param({"DRE_JAX_NATIVE": "0"}, "", marks=pytest.mark.thorough),
        pytest.param({"CXX": "no-such-compiler", "PATH": ""}, "no C++ compiler", marks=pytest.mark.thorough),
        ({"CXX": "false"}, "C++ loops cannot be used"),
    ],
)
@pytest.mark.slow
def test_without_a_compiler_jax_computes(tmp_path, variables, said):
    process = run_python(PROGRAM, DRE_JAX_CACHE=str(tmp_path), **variables)
    assert process.stdout == "False True\n"
    assert process.stderr.count("C++ loops cannot be used") == bool(said)
    assert said in process.stderr
    assert not list(tmp_path.glob("native-*"))


@pytest.fixture
def undecided(monkeypatch):
    """Lets a test decide anew whether the C++ is used; what it decides is forgotten."""
    monkeypatch.delenv(trial.VARIABLE, raising=False)
    trial.decision.cache_clear()
    yield
    trial.decision.cache_clear()


@pytest.mark.skipif(native.compiler_version() is None, reason="no C++ compiler on this machine")
@pytest.mark.usefixtures("undecided")
def test_a_machine_with_a_compiler_uses_the_library():
    """Other tests of the C++ would be skipped."""
    assert native.available(), native.decision().why_not


def no_handler():
    raise RuntimeError("No FFI handler registered\nfor dre_jax_steps")


@needs_compiler
@pytest.mark.parametrize(("step", "said"), [(lambda: (1.2, 6.5), "but gave 1.2"), (no_handler, "for dre_jax_steps")])
@pytest.mark.usefixtures("undecided")
def test_a_library_with_a_wrong_result_is_not_used(monkeypatch, caplog, step, said):
    monkeypatch.setattr(trial, "_one_step", step)
    with caplog.at_level(logging.WARNING, "dre_jax.native"):
        assert not native.available()
        assert not native.available()
    (message,) = (record.getMessage() for record in caplog.records)
    assert said in message
    assert backend()["steps"] == "xla"


@pytest.mark.usefixtures("undecided")
def test_no_warning_if_the_library_is_disabled(monkeypatch, caplog):
    monkeypatch.setenv(trial.VARIABLE, "0")
    assert not native.available()
    assert native.decision() == (None, "DRE_JAX_NATIVE=0")
    assert not caplog.records
