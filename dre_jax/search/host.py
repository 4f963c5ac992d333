"""Host methods: classes of other libraries behind HPO-B's own call, in a plain Python loop.

The compiled loop (`dre_jax.search.loop`) needs pure functions; a host method needs nothing but Python.
"""

import inspect
import operator
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Float64, Int

from dre_jax.data.checks import show
from dre_jax.data.tasks import unit_scale
from dre_jax.errors import MethodError


class HostMethod(Protocol):
    """The call of HPO-B's handler (Pineda Arango et al. 2021); one object serves one run, and may keep state."""

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any = None) -> Any:
        """Suggests what to evaluate next.

        Args:
          X_obs: f64[n, D], evaluated so far, in the order of evaluation.
          y_obs: f64[n, 1], scaled to [0, 1] with the whole table's range; higher is better.
          X_pen: f64[m, D], not evaluated yet; left out where the search is continuous.

        Returns:
          The index of a row of X_pen; in continuous search a vector of D numbers in [0, 1].
        """
        ...


def run_host(
    method: HostMethod,
    x: Float[np.ndarray, "n D"],
    y: Float[np.ndarray, " n *one"],
    design: Int[np.ndarray, " n0"],
    n_trials: int,
    *,
    name: str | None = None,
) -> Float64[np.ndarray, " {n_trials}+1"]:
    """Does one run of T trials on a table as HPO-B's handler does; returns the incumbents.

    Responses are scaled with the table, and the run ends at its optimum. Like HPO-B's handler it looks for the optimum
    after each trial, so a method is asked once even where the design holds it. A table with a constant response gives
    0.5 throughout, as in `run_tasks`, where HPO-B has 0/0. A method that keeps state must be a new object for each run.
    Messages call it ``name``, by default its class.

    Raises `MethodError` for an answer that is not the index of a pending row. Exceptions of the method itself pass
    through.
    """
    name = name or type(method).__name__
    x = np.asarray(x, np.float64)
    scaled_y = unit_scale(np.asarray(y, np.float64).reshape(-1))[:, None]
    ask = _bind_call(method)
    current = [int(row) for row in design]
    pending = [row for row in range(len(x)) if row not in set(current)]
    trace = [float(scaled_y[current].max())]
    best = float(scaled_y.max())
    while len(trace) <= n_trials and pending:
        answer = ask(x[current], scaled_y[current], x[pending])
        current.append(pending.pop(_index(answer, len(pending), name)))
        trace.append(float(scaled_y[current].max()))
        if trace[-1] == best:
            break
    return np.array(trace + [best] * (n_trials + 1 - len(trace)))


def _bind_call(method: HostMethod) -> Any:
    """Returns the call with keyword arguments, as of HPO-B's newer handlers, or with positional ones, as of older."""
    call = method.observe_and_suggest
    try:
        inspect.signature(call).bind(X_obs=None, y_obs=None, X_pen=None)
    except (TypeError, ValueError):
        return call
    return lambda x_obs, y_obs, x_pen: call(X_obs=x_obs, y_obs=y_obs, X_pen=x_pen)


def _index(answer: Any, n_pending: int, name: str) -> int:
    """Returns the answer as an index; NumPy integers and arrays or tensors without dimensions are accepted."""
    rule = f"method {name}: observe_and_suggest must return the index of one of the {n_pending} rows of X_pen"
    if isinstance(answer, (bool, np.bool_)):
        raise MethodError(f"{rule}, but returned {answer!r}")
    try:
        index = operator.index(answer)
    except (TypeError, ValueError):
        raise MethodError(f"{rule}, but returned {show(answer)} of type {type(answer).__name__}") from None
    if not 0 <= index < n_pending:
        raise MethodError(f"{rule}, but returned {index}")
    return index
