"""Programs that are kept from one process to the next."""

import json
import os

import pytest

from tests.processes import run_python

# A program of a user's before, one inside, one after; what is in the folder each time, and JAX's settings at the end.
SCRIPT = """
import json, os, sys
import jax, jax.numpy as jnp
from dre_jax.runtime import cache

def files():
    return sorted(name for name in os.listdir(sys.argv[1]) if name.startswith("jit_"))

found = []
x = jnp.arange(3.0)
for name in ("before", "inside", "after"):
    def f(x):
        return x * 2.0 + len(name)
    f.__name__ = name
    if name == "inside":
        with cache.keep_programs_within():
            jax.jit(f)(x)
    else:
        jax.jit(f)(x)
    found.append([file.split("-")[0] for file in files() if "atime" not in file])
settings = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
if "keep" in sys.argv:
    cache.keep_programs()
    jax.jit(lambda x: x - 7.0)(x)
print(json.dumps([found, settings, len(files())]))
"""


def run(folder, *arguments, **variables):
    own = dict.fromkeys(["JAX_COMPILATION_CACHE_DIR", *(name for name in os.environ if "JAX_PERSISTENT" in name)])
    return json.loads(run_python(SCRIPT, folder, *arguments, **own | {"DRE_JAX_CACHE": str(folder)} | variables).stdout)


def test_only_programs_inside_the_context_are_cached(tmp_path):
    result, settings, n_files = run(tmp_path, "keep")
    assert result == [[], ["jit_inside"], ["jit_inside"]]
    assert settings == [None, 1.0]
    assert n_files > 1  # for good


@pytest.mark.thorough
def test_settings_of_the_user_stay(tmp_path):
    assert run(tmp_path, "keep", DRE_JAX_CACHE="") == [[[], [], []], [None, 1.0], 0]
    own = tmp_path / "own"
    result, settings, n_files = run(tmp_path, "keep", JAX_COMPILATION_CACHE_DIR=str(own))
    assert (result, settings, n_files) == ([[], [], []], [str(own), 1.0], 0)
