"""Losses that a ranking ensemble can be trained with, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jax import Array

from dre_jax.errors import ConfigError
from dre_jax.losses.listwise import listmle_ranked, listnet_ranked
from dre_jax.losses.order import RankedList
from dre_jax.losses.pairwise import ranknet_ranked
from dre_jax.losses.pointwise import subset_regression_ranked
from dre_jax.losses.regression import mean_squared_error_ranked


@dataclass(frozen=True)
class Loss:
    """A loss over lists that are sorted by relevance."""

    fn: Callable[[Array, RankedList], Array]
    """Scores f32[..., n], best item first, and their `RankedList` -> f32[...]."""
    uses_values: bool
    """The loss depends on the values of the responses, not on their order alone."""


LOSSES: dict[str, Loss] = {
    "listmle": Loss(listmle_ranked, uses_values=False),
    "listnet": Loss(listnet_ranked, uses_values=True),
    "ranknet": Loss(ranknet_ranked, uses_values=False),
    "subset_regression": Loss(subset_regression_ranked, uses_values=False),
    "mean_squared_error": Loss(mean_squared_error_ranked, uses_values=True),
}
"""Losses by name. tests/losses/test_oracles.py tests each of them against an oracle."""


def register_loss(name: str, fn: Callable[[Array, RankedList], Array], *, uses_values: bool) -> None:
    """Adds a loss to `LOSSES`, so that `LossConfig(name=...)` accepts it.

    Args:
      name: of the loss.
      fn: scores f32[..., n], best item first, and their `RankedList` -> f32[...].
      uses_values: whether the loss depends on the values of the responses, not on their order alone.

    Raises:
      ConfigError: if the name belongs to another loss, or ``fn`` cannot be called.

    Example:
      >>> register_loss("listnet", listnet_ranked, uses_values=True)  # the same again: nothing changes
      >>> LOSSES["listnet"].uses_values
      True
    """
    if not callable(fn):
        raise ConfigError(f"loss {name!r} must be a function, but got {fn!r}")
    loss = Loss(fn, uses_values=uses_values)
    if LOSSES.setdefault(name, loss) != loss:
        raise ConfigError(f"a loss must have a name of its own, but {name!r} is registered already")
