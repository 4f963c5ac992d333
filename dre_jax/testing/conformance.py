"""What every method promises; see `dre_jax.search.method`. Each check is a function of a method and what it learned."""

import dataclasses
from functools import partial, wraps
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.methods.entries.entry import Entry, check_entry
from dre_jax.search.history import Candidates, History
from dre_jax.search.loop import run, run_in_python
from dre_jax.search.method import Method, as_padding, value
from dre_jax.testing.cases import (
    DESIGN,
    N_SLOTS,
    N_TRIALS,
    degenerate_cases,
    past_tasks,
    table,
    usual_case,
)

_SEED, _N_RUNS = 5, 3
_traces: list[Method] = []
"""Methods whose values were traced, in order: one entry for each compiled program."""


def check_method(
    method: Method, past: SearchSpace | None = None, *, n_columns: int = 2, draws_values: bool = False
) -> None:
    """Fits a method to small past tasks, and applies all checks of this module.

    Args:
      method: a frozen dataclass; an untrained one, with few steps, is checked sooner.
      past: past tasks, by default three of 5 to 30 rows: a usual one, one with equal responses, one with equal rows.
      n_columns: number D of columns of the past tasks.
      draws_values: whether the method draws a random number for each candidate, as random search and HEBO do.
        Candidates in another order then have other values.

    Raises:
      AssertionError: for the first promise that the method breaks, in one line.

    Example:
      >>> from dre_jax.methods import find
      >>> check_method(find("random").make(), draws_values=True)
    """
    check_capabilities(method)
    params = method.fit(past_tasks(n_columns) if past is None else past, jax.random.key(_SEED))
    for check in (check_empty_slots, check_keys, check_compiled_once, check_degenerate_histories):
        check(method, params, n_columns)
    if not draws_values:
        check_candidates_in_any_order(method, params, n_columns)
    for check in (check_padded_columns, check_vmap, check_runs):
        check(method, params, n_columns)


def check_capabilities(method: Method) -> None:
    """Checks that a method is a frozen dataclass with `fit`, `acquire`, and all functions of its optional protocols.

    Raises:
      AssertionError: with the rule that it breaks.
    """
    name = type(method).__name__
    try:
        check_entry(Entry(name=name, summary="", paper="", default=method))
    except ConfigError as error:
        raise AssertionError(str(error)) from error
    # A method is static under jit: an equal one must not be compiled again.
    copy = dataclasses.replace(cast(Any, method))
    _require(copy == method and hash(copy) == hash(method), method, "a copy must be equal and have the same hash")


def check_empty_slots(method: Method, params: Any, n_columns: int = 2) -> None:
    """Checks that the content of empty slots of the history and of the candidates changes no value.

    Args:
      method: a method.
      params: the result of its `fit`.
      n_columns: number D of columns.

    Raises:
      AssertionError: if values differ, or their shape is not that of the candidates.
    """
    expected = _values(method, params, *usual_case(n_columns))
    for garbage in (3.0, -1e6):
        values = _values(method, params, *usual_case(n_columns, garbage))
        _require_equal(values, expected, method, f"empty slots that hold {garbage:g} must change no value")


def check_keys(method: Method, params: Any, n_columns: int = 2) -> None:
    """Checks that the same key gives the same values when `acquire` is traced again.

    Arguments as in `check_empty_slots`.

    Raises:
      AssertionError: if values differ, as random numbers of NumPy do, which become constants of a compiled program.
    """
    history, candidates = usual_case(n_columns)
    expected = _values(method, params, history, candidates)
    traced_again = jax.jit(partial(value, method))
    values = np.asarray(traced_again(params, history, candidates, jax.random.key(_SEED)))[np.asarray(candidates.where)]
    _require_equal(values, expected, method, "the same key must give the same values")


def check_compiled_once(method: Method, params: Any, n_columns: int = 2) -> None:
    """Checks that a second call compiles nothing, with other numbers, another key and an equal method.

    Arguments as in `check_empty_slots`.

    Raises:
      AssertionError: if `acquire` is traced again.
    """
    history, candidates = usual_case(n_columns)
    _values(method, params, history, candidates)
    n_traces = len(_traces)
    other = history._replace(x=1.0 - history.x), candidates._replace(x=1.0 - candidates.x)
    equal_method: Method = dataclasses.replace(cast(Any, method))
    _values(equal_method, params, *other, seed=_SEED + 1)
    _require(len(_traces) == n_traces, method, "a second call must compile nothing, but acquire was traced again")


def check_degenerate_histories(method: Method, params: Any, n_columns: int = 2) -> None:
    """Checks that values are numbers without trials, after one, and where rows or responses are equal.

    Infinite values are numbers. Arguments as in `check_empty_slots`.

    Raises:
      AssertionError: if the value of a candidate is NaN.
    """
    for name, history, candidates in degenerate_cases(n_columns):
        n_undefined = np.isnan(_values(method, params, history, candidates)).sum()
        _require(n_undefined == 0, method, f"values must be numbers, but {n_undefined} are NaN ({name})")


def check_candidates_in_any_order(method: Method, params: Any, n_columns: int = 2) -> None:
    """Checks that candidates in another order have the same values; arguments as in `check_empty_slots`.

    Raises:
      AssertionError: if values differ by more than rounding.
    """
    history, candidates = usual_case(n_columns)
    order = np.random.default_rng(2).permutation(N_SLOTS)
    expected = _all_values(method, params, history, candidates)[order]
    reordered_candidates = jax.tree.map(lambda field: field[order], candidates)
    values, where = _all_values(method, params, history, reordered_candidates), np.asarray(reordered_candidates.where)
    _require_near(values[where], expected[where], method, "candidates in another order must have the same values")


def check_padded_columns(method: Method, params: Any, n_columns: int = 2) -> None:
    """Checks that columns of zeros change no value, if the method has `pad_columns`.

    Arguments as in `check_empty_slots`.

    Raises:
      AssertionError: if values differ by more than rounding.
    """
    padding_method = as_padding(method)
    if padding_method is None:
        return
    history, candidates = usual_case(n_columns)
    wide_params = padding_method.pad_columns(params, n_columns, n_columns + 3)
    wide_x = [jnp.pad(x, ((0, 0), (0, 3))) for x in (history.x, candidates.x)]
    wide = history._replace(x=wide_x[0]), candidates._replace(x=wide_x[1])
    expected, values = _values(method, params, history, candidates), _values(method, wide_params, *wide)
    _require_near(values, expected, method, "columns of zeros must change no value")


def check_vmap(method: Method, params: Any, n_columns: int = 2) -> None:
    """Checks that `acquire` under `jax.vmap` has the values of single calls; arguments as in `check_empty_slots`.

    Raises:
      AssertionError: if values differ by more than rounding.
    """
    history, candidates = usual_case(n_columns)
    other = history._replace(x=jnp.where(history.where[:, None], 1.0 - history.x, history.x))
    histories = jax.tree.map(lambda *fields: jnp.stack(fields), history, other)
    keys = jax.random.split(jax.random.key(_SEED), 2)
    acquire = partial(value, method, params)
    values = jax.jit(jax.vmap(acquire, in_axes=(0, None, 0)))(histories, candidates, keys)
    for i, single in enumerate((history, other)):
        expected = np.asarray(_compiled_value(method, params, single, candidates, keys[i]))
        where = np.asarray(candidates.where)
        _require_near(
            np.asarray(values[i])[where], expected[where], method, "vmap must give the values of single calls"
        )


def check_runs(method: Method, params: Any, n_columns: int = 2) -> None:
    """Checks that the compiled loop picks the rows of a Python loop on a padded table, and no row twice.

    Arguments as in `check_empty_slots`.

    Raises:
      AssertionError: if picks differ.
    """
    design = np.array(DESIGN, np.int32)
    scanned_run = jax.jit(partial(run, method, n_trials=N_TRIALS))
    for seed in range(_N_RUNS):
        key = jax.random.key(seed)
        picks = scanned_run(params, table(n_columns), jnp.asarray(design), key).tolist()
        expected = run_in_python(method, params, table(n_columns, N_SLOTS), design, key, N_TRIALS).tolist()
        rule = "the compiled loop must pick the rows of a Python loop on a padded table"
        _require(picks == expected, method, f"{rule}, {expected}, but picks {picks}")
        rows = [*DESIGN, *(row for row in picks if row >= 0)]
        _require(len(set(rows)) == len(rows), method, f"a run must pick no row twice, but picks {rows}")


@wraps(value)  # of one name with `value`, so that JAX's cache of compiled programs needs to keep one of the two
def _traced_value(method: Method, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
    _traces.append(method)
    return value(method, params, history, candidates, key)


_compiled_value = jax.jit(_traced_value, static_argnames="method")


def _all_values(
    method: Method, params: Any, history: History, candidates: Candidates, seed: int = _SEED
) -> npt.NDArray[Any]:
    """Returns the values f[N] of all slots. Raises `AssertionError` for another shape."""
    values = np.asarray(_compiled_value(method, params, history, candidates, jax.random.key(seed)))
    shape = candidates.where.shape
    _require(values.shape == shape, method, f"acquire must return the shape {shape}, but returns {values.shape}")
    return values


def _values(
    method: Method, params: Any, history: History, candidates: Candidates, seed: int = _SEED
) -> npt.NDArray[Any]:
    """Returns the values of the candidates, without empty slots."""
    return _all_values(method, params, history, candidates, seed)[np.asarray(candidates.where)]


def _require(holds: bool, method: Method, rule: str) -> None:
    if not holds:
        raise AssertionError(f"{type(method).__name__}: {rule}")


def _require_equal(values: npt.NDArray[Any], expected: npt.NDArray[Any], method: Method, rule: str) -> None:
    n_others = np.sum((values != expected) & ~(np.isnan(values) & np.isnan(expected)))
    _require(n_others == 0, method, f"{rule}, but {n_others} of {len(expected)} differ")


def _require_near(values: npt.NDArray[Any], expected: npt.NDArray[Any], method: Method, rule: str) -> None:
    """Raises `AssertionError` if values differ by more than a thousandth of themselves or of their range."""
    finite = expected[np.isfinite(expected)]
    tolerance = 1e-3 * float(np.ptp(finite)) + 1e-5 if len(finite) else 0.0
    near = np.isclose(values, expected, rtol=1e-3, atol=tolerance, equal_nan=True)
    _require(bool(near.all()), method, f"{rule}, but {int((~near).sum())} of {len(expected)} differ")
