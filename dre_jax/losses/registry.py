"""Losses that a ranking ensemble can be trained with, by name."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from dre_jax.errors import ConfigError
from dre_jax.losses.functions import RankedLoss, listmle, listnet, mean_squared_error, ranknet, subset_regression
from dre_jax.losses.order import RankedList
from dre_jax.runtime.kept_programs import depend_on


@dataclass(frozen=True)
class Loss:
    """A loss over lists that are sorted by relevance.

    Raises:
      ConfigError: if ``uses_values`` is neither true nor false.
    """

    fn: RankedLoss
    """Scores f32[..., n], best item first, and their `RankedList` -> f32[...]."""
    uses_values: bool
    """The loss depends on the values of the responses, not on their order alone."""

    def __post_init__(self) -> None:
        if not isinstance(self.uses_values, bool):
            raise ConfigError(f"uses_values of a loss must be True or False, but is {self.uses_values!r}")


LOSSES: dict[str, Loss] = {
    "listmle": Loss(listmle.ranked, uses_values=False),
    "listnet": Loss(listnet.ranked, uses_values=True),
    "ranknet": Loss(ranknet.ranked, uses_values=False),
    "subset_regression": Loss(subset_regression.ranked, uses_values=False),
    "mean_squared_error": Loss(mean_squared_error.ranked, uses_values=True),
}
"""Losses by name. tests/losses/test_oracles.py tests each of them against an oracle."""


def register_loss(name: str, fn: RankedLoss, *, uses_values: bool) -> None:
    """Adds a loss to `LOSSES`, so that `LossConfig(name=...)` accepts it.

    The function is traced once, so that a wrong declaration is an error here and not a training on another scale.

    Args:
      name: the name of the loss.
      fn: scores f32[..., n], best item first, and their `RankedList` -> f32[...].
      uses_values: whether the loss depends on the values of the responses, not on their order alone.

    Raises:
      ConfigError: if the name belongs to another loss, ``fn`` cannot be called or returns another shape, or reads
        `RankedList.response` although the loss is declared to use no values.

    Example:
      >>> register_loss("listnet", listnet.ranked, uses_values=True)  # the same again: nothing changes
      >>> LOSSES["listnet"].uses_values
      True
    """
    if not callable(fn):
        raise ConfigError(f"loss {name!r} must be a function, but got {fn!r}")
    loss = Loss(fn, uses_values=uses_values)
    if LOSSES.get(name) != loss:
        _check_function(name, loss)
        depend_on(name)
    if LOSSES.setdefault(name, loss) != loss:
        raise ConfigError(f"a loss must have a name of its own, but {name!r} is registered already")


def _check_function(name: str, loss: Loss) -> None:
    """Traces a loss on two lists of three items, and one that uses no values without the responses."""

    def shape(dtype: Any) -> Any:
        return jax.ShapeDtypeStruct((2, 3), dtype)

    scores, floats = shape(jnp.float32), shape(jnp.float32)
    lists = RankedList(floats, shape(jnp.bool_), floats, shape(jnp.int32), shape(jnp.int32))
    rule = f"loss {name!r} must map scores f32[..., n] and their RankedList to f32[...]"
    try:
        result = jax.eval_shape(loss.fn, scores, lists)
    except Exception as error:  # whatever a function does with arguments that it does not expect
        raise ConfigError(f"{rule}, but raises {type(error).__name__}: {error}") from error
    if getattr(result, "shape", None) != (2,) or not jnp.issubdtype(result.dtype, jnp.floating):
        raise ConfigError(f"{rule}, but maps f32[2, 3] to {result}")
    if loss.uses_values:
        return
    withheld: Any = None
    try:
        jax.eval_shape(loss.fn, scores, lists._replace(response=withheld))
    except Exception as error:
        rule = f"loss {name!r} is declared with uses_values=False, so it must not read RankedList.response"
        raise ConfigError(f"{rule}, but does: register it with uses_values=True") from error
