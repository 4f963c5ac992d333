"""Methods on deep kernels: `dkgp`, `fsbo` and `dklm`."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.methods import METHODS
from dre_jax.methods.dkgp import DeepKernelGP
from dre_jax.methods.dklm import DKLM
from dre_jax.methods.fsbo import FewShotBO
from dre_jax.model import Support
from dre_jax.search import Candidates
from dre_jax.search.batch import run_tasks
from dre_jax.search.history import make_history
from dre_jax.surrogates import standardise
from dre_jax.surrogates.deep_kernel import DeepKernelConfig, TuningConfig, init, log_likelihood
from dre_jax.surrogates.meta_kernel import KernelTraining

NAMES = ("dkgp", "fsbo", "dklm")
KEY = jax.random.key(3)
# `dkgp` has the kernel of `fsbo`, and `dklm` the rest of it.
each = pytest.mark.parametrize("name", ["dkgp", pytest.param("fsbo", marks=pytest.mark.thorough), "dklm"])
SMALL = {
    "dkgp": DeepKernelConfig(layers=(8, 8)),
    "fsbo": DeepKernelConfig(layers=(8, 8)),
    "dklm": DeepKernelConfig(layers=(8, 8), phi=(8, 8), rho=(8, 4)),
}


def small(name, **tuning):
    """A method with little to compute."""
    method = METHODS[name].make()
    return dataclasses.replace(method, model=SMALL[name], tuning=dataclasses.replace(method.tuning, **tuning))


def start_of(method, n_columns):
    return None if isinstance(method, DeepKernelGP) else init(method.model, n_columns, jax.random.key(4))


def sinusoid(seed, family, n_rows=60):
    """One task: a sinusoid of a random phase along the first column, of one or two waves; the second says nothing."""
    random = np.random.default_rng([seed, family])
    x = random.random((n_rows, 2)).astype(np.float32)
    waves = 1.0 + family
    return Task(f"{family}-{seed}", x, np.sin(2 * np.pi * (waves * x[:, 0].astype(np.float64) + random.random())))


@pytest.mark.thorough
@pytest.mark.slow
def test_transfer_finds_sinusoids_sooner():
    families = [(seed, family) for seed in range(10) for family in (0, 1)]
    train = {t.name: t for t in (sinusoid(seed, family) for seed, family in families)}
    test = {t.name: t for t in (sinusoid(100 + seed, family) for seed, family in families)}
    designs = {
        name: {f"s{i}": np.random.default_rng([i, j]).choice(60, 3, replace=False) for i in range(3)}
        for j, name in enumerate(test)
    }
    space = SearchSpace("sinusoids", train=train)
    regret = {}
    for name in ("random", "dkgp", "fsbo"):
        method = METHODS[name].make()
        if name != "random":
            method = small(name, steps=50)
        if name == "fsbo":
            training = KernelTraining(steps=1500, learning_rate=3e-3)
            method = dataclasses.replace(method, meta_training=training, model=DeepKernelConfig(layers=(32, 32)))
        params = method.fit(space, jax.random.key(0))
        traces = run_tasks(method, params, test, designs, n_trials=5, key=jax.random.key(1))
        regret[name] = np.array([1.0 - trace[5] for *_, trace in traces])
    assert len(regret["fsbo"]) == 60
    for other in ("random", "dkgp"):
        gain = regret[other] - regret["fsbo"]
        assert gain.mean() > 2.0 * gain.std() / np.sqrt(len(gain)), {n: r.mean() for n, r in regret.items()}


@each
def test_what_stands_in_empty_slots_changes_nothing(name):
    random = np.random.default_rng(0)
    method = small(name, steps=5)
    history, counts = make_history(random.random((9, 3)), random.random(9), 16), jnp.arange(25) < 20
    rows, params, acquire = random.random((25, 3)), start_of(method, 3), jax.jit(method.acquire)

    def values(garbage):
        x, y = (
            jnp.where(history.where[:, None], history.x, garbage),
            jnp.where(history.where, history.response, garbage),
        )
        candidates = jnp.where(counts[:, None], jnp.asarray(rows, jnp.float32), garbage)
        return acquire(params, history._replace(x=x, response=y), Candidates(candidates, counts), KEY)[:20]

    plain = values(0.5)
    np.testing.assert_array_equal(plain, values(jnp.nan))
    assert np.ptp(plain) > 0.1


HARD = {
    "many columns": lambda r: (r.random((12, 64)), r.random(12)),
    "one observation": lambda r: (r.random((1, 64)), np.array([0.3])),
    "no observation": lambda r: (np.zeros((0, 64)), np.zeros(0)),
    "equal rows": lambda r: (np.full((12, 64), 0.5), r.random(12)),
    "equal columns and ties": lambda r: (np.pad(r.random((12, 2)), ((0, 0), (0, 62))), np.repeat([0.1, 0.7], 6)),
    "equal responses": lambda r: (r.random((12, 64)), np.full(12, 0.7)),
    "an outlier": lambda r: (r.random((12, 64)), np.append(1e-7 * r.random(11), -1e6)),
}


@each
def test_values_are_numbers_whatever_the_history(name):
    method = small(name, steps=30, learning_rate=0.1)
    acquire = jax.jit(method.acquire)
    for case, make in HARD.items():
        x, y = make(np.random.default_rng(0))
        n_columns = x.shape[1]
        rows = np.random.default_rng(1).random((30, n_columns)).astype(np.float32)
        rows[: len(x)] = x  # candidates that were evaluated already
        candidates = Candidates(jnp.asarray(rows), jnp.ones(30, bool))
        values = acquire(start_of(method, n_columns), make_history(x, y, 12), candidates, jax.random.key(0))
        assert np.isfinite(values).all(), case


def test_weights_are_drawn_anew_at_every_trial():
    method, random = small("dkgp", steps=2), np.random.default_rng(2)
    history = make_history(random.random((6, 3)), random.random(6))
    candidates = Candidates(jnp.asarray(random.random((20, 3)), jnp.float32), jnp.ones(20, bool))
    acquire = jax.jit(method.acquire)
    values = [acquire(None, history, candidates, jax.random.key(seed)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(values[0], values[1])
    assert np.abs(values[0] - values[2]).max() > 1e-3


def test_reuse_goes_on_from_the_last_trial():
    method = dataclasses.replace(small("fsbo", steps=20, learning_rate=0.02), reuse=True)
    assert method.stateful
    assert not dataclasses.replace(method, reuse=False).stateful
    assert not dataclasses.replace(method, tuning=TuningConfig(steps=0, learning_rate=1.0)).stateful
    params, random = start_of(method, 2), np.random.default_rng(0)
    history = make_history(random.random((3, 2)), random.random(3))
    candidates = Candidates(jnp.asarray(random.random((20, 2)), jnp.float32), jnp.ones(20, bool))
    advance = jax.jit(method.advance)
    first, state = advance(method.begin(params, 2, KEY), history, candidates, KEY)
    second, after = advance(state, history, candidates, KEY)
    assert np.abs(first - second).max() > 1e-3
    # The likelihood of the same history goes on rising.
    assert likelihood(method.model, params, history) < likelihood(method.model, state, history)
    assert likelihood(method.model, state, history) < likelihood(method.model, after, history)


@partial(jax.jit, static_argnums=0)
def likelihood(config, params, history):
    y = standardise(history.response, history.where).y
    return log_likelihood(config, params, Support(history.x, y, history.where), history.x, y, history.where)


def test_the_next_call_compiles_nothing():
    method, random = small("fsbo", steps=2), np.random.default_rng(2)
    acquire = jax.jit(method.acquire)
    candidates = Candidates(jnp.asarray(random.random((20, 3)), jnp.float32), jnp.ones(20, bool))
    for n in (2, 5, 9):
        acquire(
            start_of(method, 3),
            make_history(random.random((n, 3)), random.random(n), 16),
            candidates,
            jax.random.key(n),
        )
    assert acquire._cache_size() == 1


def test_who_has_landmarks():
    assert DKLM.model.has_landmarks
    assert not FewShotBO().model.has_landmarks
