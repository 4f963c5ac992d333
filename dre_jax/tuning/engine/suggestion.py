"""The result of an engine: a configuration and the values of the method for it."""

from typing import NamedTuple

from dre_jax.tuning.space.space import Params


class Suggestion(NamedTuple):
    """A configuration to evaluate next, and the values of the method for it."""

    params: Params
    improvement: float | None = None
    """Expected improvement of the best candidate on the best response, in units of the responses, times the probability
    that it is feasible; None if the method was not used or has none, or all responses are equal."""
    past_weight: float | None = None
    """Total weight of the hypotheses that use past tasks; None if the method was not used or does not weigh them."""
    further: tuple[Params, ...] = ()
    """Other new configurations that the method values, from the same fit, the best first; if they were asked for."""
