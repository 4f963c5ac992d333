"""The loops are built once and kept; a machine where they cannot be built does without."""

import os
import subprocess
import sys

import pytest

from dre_jax import native

PROGRAM = """
import logging
logging.basicConfig(level=logging.INFO)
import jax, jax.numpy as jnp
from dre_jax import native
from dre_jax.model import ModelConfig, init
from dre_jax.training import FineTuneConfig, fine_tune
model, key = ModelConfig(members=1, hidden=(4,), phi=(4,), rho=(4,)), jax.random.key(0)
history = jnp.eye(4), jnp.linspace(1.0, 0.0, 4), jnp.arange(4), jnp.ones(4, bool)
tune = jax.jit(fine_tune, static_argnums=(0, 1))
tuned = tune(model, FineTuneConfig(epochs=2), init(model, 4, key), *history, key)
print(native.available(), bool(jnp.isfinite(tuned.scorers["out_kernel"]).all()))
"""


def run(**variables):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.mark.multiprocess
@pytest.mark.skipif(not native.available(), reason="no C++ compiler on this machine")
def test_the_library_is_kept_and_found_again(tmp_path):
    for _ in range(2):
        assert run(DRE_JAX_CACHE=str(tmp_path))[0] == ["True", "True"]
        kept = list(tmp_path.glob("native-*"))
        assert len(kept) == 1
        kept[0].touch()
        os.utime(kept[0], (1e9, 1e9))
    assert kept[0].stat().st_mtime == 1e9, "built again"


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param({"DRE_JAX_NATIVE": "0"}, "", marks=pytest.mark.thorough),
        pytest.param({"CXX": "no-such-compiler", "PATH": ""}, "no C++ compiler", marks=pytest.mark.thorough),
        ({"CXX": "false"}, "could not be had"),
    ],
)
def test_without_a_compiler_jax_does_it_all(tmp_path, variables, said):
    out, err = run(DRE_JAX_CACHE=str(tmp_path), **variables)
    assert out == ["False", "True"]
    assert said in err
    assert not list(tmp_path.glob("native-*"))
