"""Losses that a ranking ensemble can be trained with, by name."""

import operator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from dre_jax.errors import ConfigError
from dre_jax.losses.functions import RankedLoss, listmle, listnet, mean_squared_error, ranknet, subset_regression
from dre_jax.losses.order import RankedList
from dre_jax.runtime.kept_programs import keep_while


@dataclass(frozen=True)
class Loss:
    """A loss over lists that are sorted by relevance.

    Raises:
      ConfigError: if ``fn`` cannot be called, or ``uses_values`` is neither true nor false.
    """

    fn: RankedLoss
    """Maps scores, best item first, and their `RankedList` to the loss of each list."""
    uses_values: bool
    """The loss depends on the values of the responses, not on their order alone."""

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise ConfigError(f"a loss must be a function, but got {self.fn!r}")
        if not isinstance(self.uses_values, bool):
            raise ConfigError(f"uses_values of a loss must be True or False, but is {self.uses_values!r}")

    def __call__(self, scores: Float[Array, "*batch n"], lists: RankedList) -> Float[Array, " *batch"]:
        """Returns the loss of each list of scores, best item first.

        ``lists.response`` is None for a function that is declared to use no values: to read it is an error while the
        function is traced, and not a training on another scale.

        Raises:
          ConfigError: if the function returns another shape.
        """
        withheld: Any = None
        loss = self.fn(scores, lists if self.uses_values else lists._replace(response=withheld))
        if jnp.shape(loss) != scores.shape[:-1]:
            rule = "a loss must map scores f32[..., n] and their RankedList to f32[...]"
            raise ConfigError(f"{rule}, but maps f32{list(scores.shape)} to f32{list(jnp.shape(loss))}")
        return loss


LOSSES: dict[str, Loss] = {
    "listmle": Loss(listmle.ranked, uses_values=False),
    "listnet": Loss(listnet.ranked, uses_values=True),
    "ranknet": Loss(ranknet.ranked, uses_values=False),
    "subset_regression": Loss(subset_regression.ranked, uses_values=False),
    "mean_squared_error": Loss(mean_squared_error.ranked, uses_values=True),
}
"""Losses by name; a program may add its own (docs/how-to/extend.md).

tests/losses/test_oracles.py tests each of them against an oracle."""

keep_while(partial(operator.eq, LOSSES, dict(LOSSES)))
