"""A user's function in JAX, checked once, and called inside of a program of another precision."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.errors import ConfigError
from dre_jax.space.layout_orders import Order
from dre_jax.space.parameters import Categorical, Int, Permutation
from dre_jax.space.space import Space
from dre_jax.tuning.suggestion.state import OutcomeShape, TrialOutcomes
from dre_jax.tuning.trials.objectives import Objectives


class Measurement(NamedTuple):
    """What a function returns of a trial with constraints or a cost, as `Optimizer.tell` takes them.

    Example:
      >>> Measurement(0.5, constraints={"memory": -1.0}, cost=2.0).cost
      2.0
    """

    value: Any
    """A number, or those of several objectives: a mapping, or a sequence in the order of ``directions``."""
    constraints: Mapping[str, Any] = MappingProxyType({})
    """Numbers by name, at most 0 where satisfied; one that is not finite is unknown."""
    cost: Any = None
    """A number above 0; any other one is unknown."""


class _Results(NamedTuple):
    """Scalars of a trial, in the order of the objectives and of the names of the constraints."""

    values: tuple[Any, ...]
    constraints: dict[str, Any]
    cost: Any


@dataclass(frozen=True)
class Objective:
    """A function of a task and a configuration; static."""

    function: Callable[..., Any]
    space: Space
    takes_point: bool
    """Whether it gets the point of the unit cube; otherwise hyperparameters by name."""
    takes_key: bool
    double: bool
    """Whether it computes in float64."""
    objectives: Objectives
    """What it returns the values of."""

    def __call__(self, task: Any, point: Array, key: Array) -> TrialOutcomes:
        """Returns the outcome of one trial, without the axis of trials, in the precision of the point f[P]."""
        argument, dtype = self.decode(point), point.dtype
        with jax.enable_x64(self.double):
            results = self.evaluate(task, argument, key)
        values, constraints = (
            [jnp.asarray(number).astype(dtype) for number in group]
            for group in (results.values, dict(sorted(results.constraints.items())).values())
        )
        cost = None if results.cost is None else jnp.asarray(results.cost).astype(dtype)
        signs = [objective.sign for objective in self.objectives]
        return TrialOutcomes(
            jnp.stack([sign * value for sign, value in zip(signs, values, strict=True)]),
            jnp.stack([_if(jnp.isfinite(c), c) for c in constraints]) if constraints else None,
            None if cost is None else _if((cost > 0.0) & jnp.isfinite(cost), cost),
        )

    def evaluate(self, task: Any, argument: Any, key: Array) -> _Results:
        """Returns the results of the function for a point or hyperparameters.

        Raises `ConfigError` for other objectives.
        """
        result = self.function(task, argument, key) if self.takes_key else self.function(task, argument)
        value, constraints, cost = result if isinstance(result, Measurement) else Measurement(result)
        names = [objective.name for objective in self.objectives]
        if len(names) == 1:
            return _Results((value,), dict(constraints), cost)
        if isinstance(value, Mapping) and value.keys() == set(names):
            return _Results(tuple(value[name] for name in names), dict(constraints), cost)
        if isinstance(value, (tuple, list)) and len(value) == len(names):
            return _Results(tuple(value), dict(constraints), cost)
        raise ConfigError(f"the function must return the objectives {', '.join(map(repr, names))}, but returns {value}")

    def decode(self, point: Array) -> Any:
        """Returns the point, or numbers and positions of choices by name; of permutations, those of all items."""
        dtype = jnp.float64 if self.double else jnp.float32
        if self.takes_point:
            return point.astype(dtype)
        layout = self.space.layout
        values = dict(zip(self.space.sequence, layout.values(point), strict=True))
        for name, part in zip(self.space.sequence, layout.parts, strict=True):
            if isinstance(part, Order):
                values[name] = part.items(values[name])
        kinds = {
            name: jnp.int32 if isinstance(parameter, (Categorical, Int, Permutation)) else dtype
            for name, parameter in self.space.items()
        }
        return {name: values[name].astype(kinds[name]) for name in self.space}

    def check(self, task: Any, key: Array) -> FunctionTrace:
        """Returns what the function computes.

        Raises `ConfigError` if it cannot be traced, calls the host, or returns anything but a number for each
        objective, constraint and cost.
        """
        name = getattr(self.function, "__name__", repr(self.function))
        count = "one number" if len(self.objectives) == 1 else "a number of each objective"
        rule = f"the function must compute {count} by JAX, but {name}"
        point = jax.ShapeDtypeStruct((len(self.space),), jnp.float32)
        try:
            with jax.enable_x64(self.double):
                trace = jax.make_jaxpr(self.evaluate, return_shape=True)
                traced, results = trace(task, jax.eval_shape(self.decode, point), key)
        except ConfigError:
            raise
        except Exception as error:  # of the user's code
            reason = str(error).strip().partition("\n")[0]
            raise ConfigError(f"{rule} fails where JAX traces it: {type(error).__name__}: {reason}") from error
        text = str(traced)
        if traced.effects or "pure_callback[" in text:
            raise ConfigError(f"{rule} calls the host (a callback or a print)")
        n_constraints, has_cost = len(results.constraints), results.cost is not None
        outputs = traced.out_avals
        are_scalars = not any(output.shape for output in outputs) and all(_is_real(output.dtype) for output in outputs)
        if len(outputs) != len(self.objectives) + n_constraints + has_cost or not are_scalars:
            shown = ", ".join(f"{output.dtype}{list(output.shape)}" for output in outputs)
            raise ConfigError(f"{rule} returns {shown or 'nothing'}")
        shape = OutcomeShape(len(self.objectives), n_constraints, has_cost)
        return FunctionTrace(digest(text.encode(), *traced.consts), shape, sorted(results.constraints))


class FunctionTrace(NamedTuple):
    """What a function computes."""

    digest: str
    """Of the function's program, with the arrays that it closes over."""
    shape: OutcomeShape
    constraints: list[str]
    """The names, sorted."""


def _if(condition: Array, number: Array) -> Array:
    return jnp.where(condition, number, jnp.nan)


def _is_real(dtype: Any) -> bool:
    """Returns whether values of a type are numbers with an order, or true and false, which count as 1 and 0."""
    return any(jnp.issubdtype(dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_))


def digest(*parts: Any) -> str:
    """Returns a hash of texts in bytes and of arrays."""
    result = hashlib.sha256()
    for part in parts:
        result.update(part if isinstance(part, bytes) else np.asarray(part).tobytes())
    return result.hexdigest()[:16]
