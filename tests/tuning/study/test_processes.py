"""The tuner in forked processes and in processes without a home."""

import pwd

import pytest

from dre_jax.runtime import cache
from tests.processes import run_python

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
def test_suggestions_in_forked_processes():
    """It would hang from JAX's first computation on, but not before."""
    before, after = run_python(FORK).stdout.splitlines()
    assert before == "before suggested"
    assert 'start it with multiprocessing.get_context("spawn")' in after


def test_no_home_and_an_unknown_user(monkeypatch):
    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert cache.folder() is None
