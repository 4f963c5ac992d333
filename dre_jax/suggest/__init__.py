"""The next configuration: candidates, their refinement, rules, pending trials, several objectives."""

from dre_jax.suggest.suggester import Suggester

__all__ = ["Suggester"]
