"""The warning of past studies that mislead."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from dre_jax.errors import DataWarning
from dre_jax.tuning.sources import compare_sources
from dre_jax.tuning.surrogate import Surrogate
from dre_jax.tuning.trial import Trial

_FIRST_CHECK, _CHECK_GROWTH = 8, 1.5  # numbers of complete trials at which the past is compared with them


class PastCheck:
    """Compares past studies with the complete trials of a study, whenever these have grown by a half."""

    def __init__(self, n_checked: int = 0) -> None:
        """Creates a check; earlier sessions have checked the first complete trials of a number."""
        self.next_check = max(_FIRST_CHECK, _CHECK_GROWTH * n_checked)

    def is_due(self, n_trials: int, surrogate: Surrogate | None) -> bool:
        """Returns whether a surrogate keeps past studies, and a number of trials suffices to compare them."""
        return surrogate is not None and surrogate.studies is not None and n_trials >= self.next_check

    def warn_if_misleading(
        self, trials: Sequence[Trial], direction: str, surrogate: Surrogate | None, objective: str = ""
    ) -> None:
        """Warns the caller's caller once if the past studies mislead; objective: one of several."""
        if surrogate is None or not self.is_due(len(trials), surrogate):
            return  # without a walk over the trials, for every suggestion of a long study
        complete = [trial for trial in tuple(trials) if trial.state == "complete"]
        if not self.is_due(len(complete), surrogate):
            return
        self.next_check = max(_CHECK_GROWTH * len(complete), _FIRST_CHECK)
        complete = [trial.with_objective(objective) if trial.values else trial for trial in complete]
        sources = compare_sources(surrogate, complete, direction, weigh=False)
        if sources.mislead:
            self.next_check = math.inf
            owner = f" of {objective!r}" if objective else ""
            fault = f"they predict the {len(complete)} trials worse than these do by themselves"
            rule = f"the past studies{owner} mislead: {fault}"
            evidence = f"with evidence of {min(math.exp(-sources.gain), 1e6):.0f} to 1"
            remedy = "surrogate.sources(trials) compares them; check the direction of the past values"
            warnings.warn(f"{rule}, {evidence}: {remedy}", DataWarning, stacklevel=3)
