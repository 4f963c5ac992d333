"""The choice of a backend: by platform, and by what each supports."""

import importlib
from dataclasses import fields
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import Task, build_table
from dre_jax.errors import ConfigError
from dre_jax.methods.dre import FineTuneConfig, LossConfig, MetaTrainConfig, ModelConfig, init
from dre_jax.methods.dre.backends import BACKENDS, cuda
from dre_jax.methods.dre.backends.cuda.decision import Decision
from dre_jax.methods.dre.backends.cuda.plan import Limits
from dre_jax.methods.dre.backends.provenance import backend
from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.methods.dre.steps import start, train

MODEL, CALL = ModelConfig(members=2, hidden=(8, 8), phi=(8, 8), rho=(4,)), "dre_jax_cuda_steps"


@pytest.fixture
def an_h100(monkeypatch):
    """The decision of a process that has a GPU and all that the kernel needs; nothing is compiled or launched."""
    decision = Decision(Limits(90, 232_448, 233_472, 132), None)
    module = importlib.import_module("dre_jax.methods.dre.backends.cuda.decision")
    monkeypatch.setattr(module, "decision", lambda: decision)
    monkeypatch.setattr("dre_jax.methods.dre.backends.cuda.steps.add_kernel", lambda plan, limits: 1)


def text_for(platform, function, *arguments):
    return jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


def fit(runs):
    history = (
        jnp.zeros((runs, 20, 3)),
        jnp.zeros((runs, 20)),
        jnp.zeros((runs, 20), jnp.int32),
        jnp.ones((runs, 20), bool),
    )
    tune = partial(fine_tune, MODEL, FineTuneConfig(epochs=5))
    keys = jax.random.split(jax.random.key(0), runs)
    return jax.vmap(tune, in_axes=(None, 0, 0, 0, 0, 0)), (init(MODEL, 3, jax.random.key(0)), *history, keys)


def test_a_gpu_fine_tunes_all_runs_in_one_launch(an_h100):
    function, arguments = fit(3)
    text = text_for("cuda", function, *arguments)
    assert text.count(f"custom_call @{CALL}") == 1
    assert text.count("stablehlo.dot_general") < 5  # the ranks' sums; no product of a layer


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_without_a_kernel_an_accelerator_scans(platform):
    function, arguments = fit(3)
    text = text_for(platform, function, *arguments)
    assert "custom_call" not in text
    assert text.count("stablehlo.dot_general") > 20


def test_meta_training_has_the_same_kernel(an_h100):
    config = MetaTrainConfig(steps=3, n_support=2, n_query=4)
    rng = np.random.default_rng(0)
    table = build_table({"task": Task("task", rng.random((9, 2), np.float32), rng.random(9))})
    state = start(MODEL, config, 2, jax.random.key(0))
    lowered = train.trace(MODEL, config, table, state, jax.random.key(0), 3).lower(lowering_platforms=("cuda",))
    assert lowered.as_text().count(f"custom_call @{CALL}") == 1


def test_each_platform_has_one_backend():
    assert sorted(backend.platform for backend in BACKENDS) == ["cpu", "cuda"]


def test_results_name_the_kernel_that_computed_them(monkeypatch):
    assert backend()["steps"].split()[0] in ("native", "xla")
    decision = Decision(Limits(90, 232_448, 233_472, 132), None)
    monkeypatch.setattr("dre_jax.methods.dre.backends.cuda.decision", lambda: decision)
    assert backend()["steps"] == f"cuda {cuda.fingerprint()} float32"
    monkeypatch.setenv("DRE_JAX_CUDA_PRECISION", "tf32")
    assert backend()["steps"] == f"cuda {cuda.fingerprint()} tf32"
    monkeypatch.setenv("DRE_JAX_CUDA_PRECISION", "half")
    with pytest.raises(ConfigError, match="DRE_JAX_CUDA_PRECISION must be one of"):
        backend()


def test_the_kernels_cover_every_field_of_the_model():
    """A new field cannot be ignored in silence."""
    covered = {"members", "hidden", "context", "phi", "rho", "response_scale", "range_limit"}
    elsewhere = {"range_slope", "initialiser"}  # without a limit it means nothing; weights are drawn before
    assert {field.name for field in fields(ModelConfig)} == covered | elsewhere
    assert {field.name for field in fields(LossConfig)} == {"name", "weights"}
