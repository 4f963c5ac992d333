"""A user's function in JAX, checked once, and called inside of a program of another precision."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.errors import ConfigError
from dre_jax.space.parameters import Categorical, Int
from dre_jax.space.space import Space


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

    def __call__(self, task: Any, point: Array, key: Array) -> Array:
        """Returns the value, a scalar with the precision of the point f[P]."""
        argument = self.decode(point)
        with jax.enable_x64(self.double):
            value = self.evaluate(task, argument, key)
        return jnp.asarray(value).astype(point.dtype)

    def evaluate(self, task: Any, argument: Any, key: Array) -> Any:
        """Returns the result of the function for a point or hyperparameters."""
        return self.function(task, argument, key) if self.takes_key else self.function(task, argument)

    def decode(self, point: Array) -> Any:
        """Returns the point, or numbers and positions of choices by name."""
        dtype = jnp.float64 if self.double else jnp.float32
        if self.takes_point:
            return point.astype(dtype)
        values = dict(zip(self.space.sequence, self.space.layout.values(point, jnp), strict=True))
        kinds = {
            name: jnp.int32 if isinstance(parameter, (Categorical, Int)) else dtype
            for name, parameter in self.space.items()
        }
        return {name: values[name].astype(kinds[name]) for name in self.space}

    def check(self, task: Any, key: Array) -> str:
        """Returns a digest of the function's program, with the arrays that it closes over.

        Raises `ConfigError` if it cannot be traced, calls the host, or returns anything but one number.
        """
        name = getattr(self.function, "__name__", repr(self.function))
        rule = f"the function must compute one number by JAX, but {name}"
        point = jax.ShapeDtypeStruct((len(self.space),), jnp.float32)
        try:
            with jax.enable_x64(self.double):
                traced = jax.make_jaxpr(self.evaluate)(task, jax.eval_shape(self.decode, point), key)
        except Exception as error:  # of the user's code
            reason = str(error).strip().partition("\n")[0]
            raise ConfigError(f"{rule} fails where JAX traces it: {type(error).__name__}: {reason}") from error
        text = str(traced)
        if traced.effects or "pure_callback[" in text:
            raise ConfigError(f"{rule} calls the host (a callback or a print)")
        outputs = traced.out_avals
        if len(outputs) != 1 or outputs[0].shape or not _is_real(outputs[0].dtype):
            shown = ", ".join(f"{output.dtype}{list(output.shape)}" for output in outputs)
            raise ConfigError(f"{rule} returns {shown or 'nothing'}")
        return digest(text.encode(), *traced.consts)


def _is_real(dtype: Any) -> bool:
    """Returns whether values of a type are numbers with an order, or true and false, which count as 1 and 0."""
    return any(jnp.issubdtype(dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_))


def digest(*parts: Any) -> str:
    """Returns a hash of texts in bytes and of arrays."""
    result = hashlib.sha256()
    for part in parts:
        result.update(part if isinstance(part, bytes) else np.asarray(part).tobytes())
    return result.hexdigest()[:16]
