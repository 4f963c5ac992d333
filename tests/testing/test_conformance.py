"""Each check of a method refuses the method that breaks its promise, and no other one."""

import itertools
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from dre_jax import testing
from dre_jax.search import Capabilities


def pull(history, x):
    """Values of the best trial's neighbours, 0 without trials."""
    best = history.x[jnp.argmin(jnp.where(history.where, history.level, jnp.iinfo(jnp.int32).max))]
    return jnp.where(jnp.any(history.where), -jnp.sum((x - best[None, :]) ** 2, axis=-1), 0.0)


@dataclass(frozen=True)
class Sound:
    """Keeps all promises."""

    def fit(self, meta, key):
        return jnp.ones(next(iter(meta.train.values())).X.shape[1])

    def acquire(self, params, history, candidates, key):
        return pull(history, candidates.x) + candidates.x @ params

    def pad_columns(self, params, n_columns, width):
        return jnp.pad(params, (0, width - n_columns))


class ReadsEmptySlots(Sound):
    def acquire(self, params, history, candidates, key):
        return super().acquire(params, history, candidates, key) + jnp.sum(history.response) * candidates.x[:, 0]


class ReadsOtherCandidates(Sound):
    """Subtracts a mean that has the empty slots in it."""

    def acquire(self, params, history, candidates, key):
        values = super().acquire(params, history, candidates, key)
        return values - jnp.mean(values)


class DrawsOnTheHost(Sound):
    def acquire(self, params, history, candidates, key):
        draw = np.float32(np.random.default_rng().random())
        return super().acquire(params, history, candidates, key) + draw * candidates.x[:, 0]


NUMBERS = itertools.count()


@dataclass(frozen=True)
class HasAnIdentity(Sound):
    """Is another method after each copy."""

    identity: int = field(default_factory=lambda: next(NUMBERS), init=False)


class DividesByTheRange(Sound):
    def acquire(self, params, history, candidates, key):
        low = jnp.min(history.response, where=history.where, initial=jnp.inf)
        high = jnp.max(history.response, where=history.where, initial=-jnp.inf)
        share = jnp.where(history.where, (history.response - low) / (high - low), 0.0)
        return super().acquire(params, history, candidates, key) + jnp.mean(share)


class PrefersFirstSlots(Sound):
    def acquire(self, params, history, candidates, key):
        return super().acquire(params, history, candidates, key) - jnp.arange(len(candidates.x), dtype=jnp.float32)


class PadsWithOnes(Sound):
    def pad_columns(self, params, n_columns, width):
        return jnp.concatenate([params, jnp.ones(width - n_columns)]) * (width / n_columns)


class CountsSlots(Sound):
    """Prefers another end of the first column if the table is padded."""

    def acquire(self, params, history, candidates, key):
        return candidates.x[:, 0] * (1.0 if len(candidates.x) == 16 else -1.0)


class ValuesAllAlike(Sound):
    def acquire(self, params, history, candidates, key):
        return jnp.zeros(())


@dataclass(frozen=True)
class Promises(Sound):
    capabilities: ClassVar[Capabilities] = Capabilities(slotwise_fit=True)


@dataclass
class IsNotFrozen:
    fit: Any = Sound.fit
    acquire: Any = Sound.acquire


@jax.custom_batching.custom_vmap
def plain_only(x):
    return x


@plain_only.def_vmap
def _(axis_size, in_batched, x):
    return -x, in_batched[0]


class DiffersUnderVmap(Sound):
    def acquire(self, params, history, candidates, key):
        return plain_only(super().acquire(params, history, candidates, key))


BROKEN = {
    ReadsEmptySlots: (testing.check_empty_slots, "empty slots that hold 3 must change no value"),
    ReadsOtherCandidates: (testing.check_empty_slots, "must change no value"),
    ValuesAllAlike: (testing.check_empty_slots, "acquire must return the shape (21,), but returns ()"),
    DrawsOnTheHost: (testing.check_keys, "the same key must give the same values"),
    DividesByTheRange: (testing.check_degenerate_histories, "values must be numbers, but 18 are NaN (one trial)"),
    PrefersFirstSlots: (testing.check_candidates_in_any_order, "in another order must have the same values"),
    PadsWithOnes: (testing.check_padded_columns, "columns of zeros must change no value"),
    DiffersUnderVmap: (testing.check_vmap, "vmap must give the values of single calls"),
    CountsSlots: (testing.check_runs, "must pick the rows of a Python loop on a padded table"),
}


def test_a_method_that_keeps_all_promises():
    testing.check_method(Sound())


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_promise_is_one_line(kind, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user does not check annotations
    check, rule = BROKEN[kind]
    with pytest.raises(AssertionError) as error:
        check(kind(), jnp.ones(2))
    assert str(error.value).startswith(f"{kind.__name__}: ")
    assert rule in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(AssertionError):
        testing.check_method(kind())


@pytest.mark.parametrize(
    ("method", "subject"),
    [(Promises(), "fit_history"), (IsNotFrozen(), "IsNotFrozen"), (HasAnIdentity(), "a copy"), (3, "fit")],
)
def test_what_is_no_method(method, subject):
    with pytest.raises(AssertionError, match=subject):
        testing.check_method(method)


def test_a_second_call_of_an_unequal_copy_compiles():
    with pytest.raises(AssertionError, match="a second call must compile nothing"):
        testing.check_compiled_once(HasAnIdentity(), jnp.ones(2))
