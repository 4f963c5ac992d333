"""The tuner in processes with other settings, forked processes, and processes without a home."""

import pwd
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.methods import find
from dre_jax.runtime import cache
from dre_jax.search.precision import precision_of
from dre_jax.tuning import Evaluated, Float, Int, Optimizer, Space, Surrogate, past_of

SPACE = Space({"x": Float(0.0, 1.0), "n": Int(1, 4)})
TASKS = {str(t): [Evaluated({"x": x / 7, "n": 1 + x % 4}, (x / 7 - t / 3) ** 2) for x in range(8)] for t in range(2)}


def tuned():
    """A surrogate's parameters and what it suggests, after its start design as well."""
    past = past_of(SPACE, TASKS, direction="minimize")
    surrogate = Surrogate.fit(past, method="gcp", settings={"prior.steps": 5}, n_start=1)
    optimizer = Optimizer(SPACE, surrogate)
    optimizer.optimize(lambda trial: trial["x"], n_trials=3)
    return surrogate.params, [trial.params for trial in optimizer.trials]


def test_x64_changes_nothing():
    """A process that has it on for a model of its own gets the same surrogate and the same suggestions."""
    params, suggestions = tuned()
    with jax.enable_x64(True):
        params_in_x64, suggestions_in_x64 = tuned()
        with precision_of(find("random").make()) as dtype:  # a method without double precision
            assert jnp.zeros(1).dtype == dtype == np.float32
        assert jnp.zeros(1).dtype == np.float64
    assert suggestions_in_x64 == suggestions
    jax.tree.map(np.testing.assert_array_equal, params_in_x64, params)
    assert {leaf.dtype.itemsize for leaf in jax.tree.leaves(params_in_x64)} == {4}


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")  # JAX's of the fork
import jax
from dre_jax import Float, Optimizer, Space
from dre_jax.errors import ConfigError
optimizer = Optimizer(Space({"x": Float(0.0, 1.0)}))
optimizer.ask()
for name in ("before", "after"):
    if os.fork() == 0:
        try:
            print(name, "suggested" if optimizer.ask() else "", flush=True)
        except ConfigError as error:
            print(name, error, flush=True)
        os._exit(0)
    os.wait()
    jax.numpy.ones(1).block_until_ready()
optimizer.ask()
"""


@pytest.mark.multiprocess
def test_a_forked_process_is_told():
    """It would hang from JAX's first computation on, but not before."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()
    assert before == "before suggested"
    assert 'start it with multiprocessing.get_context("spawn")' in after


def test_no_home_and_an_unknown_user(monkeypatch):
    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert cache.folder() is None
