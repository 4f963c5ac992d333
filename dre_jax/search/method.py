"""The one protocol: what the loop asks of a method, of one that remembers, and of one that search spaces share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.search.history import Candidates, History


class Method(Protocol):
    """Two pure functions; an object that is frozen and hashable, since it is static under jit."""

    def fit(self, meta: SearchSpace, key: Array) -> Any:
        """Learns from the training tasks of a search space; returns a tree of arrays, or None with nothing to learn."""
        ...

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
        """Values f32[N] of the candidates, higher = evaluate first; jit- and vmap-able, fixed shapes, masks."""
        ...


class StatefulMethod(Method, Protocol):
    """A method that carries something from one trial of a run to the next; `acquire` is what it does at the first."""

    stateful: bool
    """True if it does so as configured."""

    def begin(self, params: Any, n_columns: int, key: Array) -> Any:
        """The state before the first trial of a run: a tree of arrays."""
        ...

    def advance(self, state: Any, history: History, candidates: Candidates, key: Array) -> tuple[Array, Any]:
        """Values f32[N] as `acquire` gives them, and the state for the next trial, of the same shapes."""
        ...


class DrawingMethod(Method, Protocol):
    """A method that knows several models of a task."""

    def draw(self, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
        """Values as `acquire` gives them, by one model, drawn as probable as it is (Thompson sampling)."""
        ...


class WideningMethod(Method, Protocol):
    """A method whose runs on several search spaces can be one program, with columns of zeros added to the smaller."""

    widens: bool
    """True if it can as configured."""

    def widen(self, params: Any, n_columns: int, width: int) -> Any:
        """Parameters for tables of more columns, which give the same values where the columns added are zero."""
        ...


class OneByOneMethod(Method, Protocol):
    """A method whose program may work on one run at a time, however many are side by side."""

    def one_by_one(self, platform: str, n_columns: int, longest: int) -> bool:
        """Returns whether it does so on a platform, for tables of D columns and histories of so many trials."""
        ...


class TellingMethod(Method, Protocol):
    """A method that decides something while it learns, and says what."""

    def tell(self, params: Any) -> Mapping[str, str]:
        """Decisions and their reasons, a line each."""
        ...


def members_of(method: Method) -> tuple[Method, ...]:
    """Returns the methods of a committee; empty for others, whose `members` is the size of an ensemble.

    Example:
      >>> from dre_jax.methods import find
      >>> len(members_of(find("committee").make())), members_of(find("deep-ensemble").make())
      (2, ())
    """
    members = getattr(method, "members", ())
    return members if isinstance(members, tuple) else ()


def as_stateful(method: Method) -> StatefulMethod | None:
    """Returns the method if it carries a state, else None."""
    return cast(StatefulMethod, method) if getattr(method, "stateful", False) else None


def decisions_of(method: Method, params: Any) -> dict[str, str]:
    """Returns the decisions of `fit` and their reasons, by subject; empty for a method without `tell`.

    Example:
      >>> decisions_of(cast(Method, object()), None)
      {}
    """
    return dict(cast(TellingMethod, method).tell(params)) if hasattr(method, "tell") else {}


def value(
    method: Method,
    params: Any,
    state: Any,
    history: History,
    candidates: Candidates,
    key: Array,
    *,
    draw: bool = False,
) -> tuple[Array, Any]:
    """Returns values f32[N] of the candidates and the next state; with ``draw``, the values of one random model.

    Raises:
      ConfigError: for a method that cannot draw.
    """
    if draw:
        return as_drawing(method).draw(params, history, candidates, key), state
    stateful = as_stateful(method)
    if stateful is None:
        return method.acquire(params, history, candidates, key), state
    return stateful.advance(state, history, candidates, key)


def as_drawing(method: Method) -> DrawingMethod:
    """Returns the method; raises `ConfigError` if it cannot draw."""
    if as_stateful(method) is not None or not hasattr(method, "draw"):
        raise ConfigError(f"draws need a method that has several models, but got {type(method).__name__}")
    return cast(DrawingMethod, method)


def is_one_by_one(method: Method, platform: str, n_columns: int, longest: int) -> bool:
    """Returns whether the method's program works on one run at a time; see `OneByOneMethod`."""
    if not hasattr(method, "one_by_one"):
        return False
    return cast(OneByOneMethod, method).one_by_one(platform, n_columns, longest)


def as_widening(method: Method) -> WideningMethod | None:
    """Returns the method if its parameters can be widened, else None."""
    return cast(WideningMethod, method) if getattr(method, "widens", False) else None
