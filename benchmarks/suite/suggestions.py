"""Suggestions of methods for many runs side by side, as programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.suite import ours
from benchmarks.suite.loops import Loop
from dre_jax.data import SearchSpace
from dre_jax.methods import find
from dre_jax.methods.baselines.sources import fit_sources, source_tasks
from dre_jax.methods.dre.ensemble import init
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import Method, members_of

CANDIDATES = 512
_PAST_TASKS, _PAST_ROWS, _COLUMNS = 50, 120, 16


def suggestions(names: Sequence[str], runs: Sequence[int], history: int) -> Iterator[Loop]:
    """A suggestion of each method for so many runs with histories of so many trials."""
    for name in names:
        for n in runs:
            program = suggestion_program(find(name).make(), n, history)
            yield Loop(f"suggestion of {name}, {n} runs, history {history}", 0, program, runs=n)


def suggestion_program(method: Method, runs: int, history: int) -> ours.Program:
    """The values of 512 candidates for each of the runs, which share what was learned; shapes in place of arrays."""
    key = jax.random.key(0)
    shaped = partial(jax.tree.map, lambda a: jax.ShapeDtypeStruct((runs, *a.shape), a.dtype))
    trials = History(
        jnp.zeros((history, _COLUMNS)),
        jnp.zeros(history),
        jnp.zeros(history, jnp.int32),
        jnp.ones(history, bool),
    )
    candidates = Candidates(jnp.zeros((CANDIDATES, _COLUMNS)), jnp.ones(CANDIDATES, bool))
    each = jax.jit(jax.vmap(method.acquire, in_axes=(None, 0, 0, 0)))
    return each, (learned(method, _COLUMNS), shaped(trials), shaped(candidates), shaped(key))


def learned(method: Any, columns: int) -> Any:
    """Shapes of what a method learns from past tasks of so many columns; nothing is trained."""
    if members := members_of(method):
        return tuple(learned(member, columns) for member in members)
    space = SearchSpace("past", train=ours.random_tasks(_PAST_TASKS, _PAST_ROWS, columns))
    key = jax.random.key(0)
    if hasattr(method, "rows"):  # NumPy draws them
        return jax.eval_shape(partial(fit_sources, method.fitting), source_tasks(space, method.rows, key))
    if hasattr(method, "training") and hasattr(method, "model"):  # an ensemble, which a loop on the host trains
        return jax.eval_shape(partial(init, method.model, columns), key)
    return jax.eval_shape(lambda: method.fit(space, key))
