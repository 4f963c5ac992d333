"""A committee of methods; this library's own.

Every member values the candidates by its own acquisition function. The values are put on a common scale, as quantiles
of a standard Gaussian by their ranks, and the candidate with the highest sum is evaluated next. The errors of members
differ, so that the sum is often better than the best member. The default members are a Gaussian process around a
ranking ensemble, which is strong while there are few trials, and a meta-trained deep kernel, which is strong later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.methods.baselines.dre_gp import RankedGaussianProcess
from dre_jax.methods.baselines.fsbo import FREE, FewShotBO
from dre_jax.methods.entry import Entry
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import Capabilities, Method
from dre_jax.search.ranks import gaussian_ranks

FitMember = Callable[[Method, SearchSpace, Array], Any]
"""Fits one member of a committee."""


@dataclass(frozen=True, kw_only=True)
class Committee:
    """Methods whose acquisition values are added up, rank by rank.

    Raises:
      ConfigError: without members, or with one that carries a state from trial to trial.

    Example:
      >>> Committee(members=(FewShotBO(), RankedGaussianProcess())).members[0].tuning.steps
      50
    """

    members: tuple[Method, ...] = (RankedGaussianProcess(), FewShotBO())
    """The methods."""
    capabilities: ClassVar[Capabilities] = Capabilities(committee=True)

    def __post_init__(self) -> None:
        if not self.members:
            raise ConfigError("a committee must have members, but got none")

    def fit(self, meta: SearchSpace, key: Array, fit_member: FitMember | None = None) -> tuple[Any, ...]:
        """Returns the parameters of each member, learned from the training tasks.

        Args:
          meta: the search space.
          key: PRNG key.
          fit_member: fits a member in place of its own `fit`, to write checkpoints of its training.
        """
        fit = fit_member or (lambda member, meta, key: member.fit(meta, key))
        keys = jax.random.split(key, len(self.members))
        return tuple(fit(member, meta, key) for member, key in zip(self.members, keys, strict=True))

    def acquire(self, params: tuple[Any, ...], history: History, candidates: Candidates, key: Array) -> Array:
        """Returns the sum of the members' values, each as a Gaussian quantile of its rank."""
        keys = jax.random.split(key, len(self.members))
        values = [
            member.acquire(own, history, candidates, key)
            for member, own, key in zip(self.members, params, keys, strict=True)
        ]
        return jnp.sum(gaussian_ranks(jnp.stack(values), candidates.where), axis=0)


ENTRIES = (
    Entry(
        name="committee",
        summary="sum of the candidates' ranks by dre-gp and fsbo; this library's own",
        paper="this library",
        transfer=True,
        default=Committee(),
        # No learning rate: the members fit in ways that have none in common.
        short={
            "epochs": ("members.0.fitting.steps", "members.1.tuning.steps"),
            "acquisition": ("members.0.acquisition.kind", "members.1.acquisition.kind"),
        },
        free=(
            *(f"members.0.{field}" for field in ("fitting", "acquisition")),
            *(f"members.1.{field}" for field in FREE),
        ),
    ),
)
