"""Running trials of other processes of a shared study: which are lost, and which may be."""

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from dre_jax.tuning.command.worker_identity import SignOfLife, has_ended, is_of_this_machine, seconds_until_lost

WORKER, ALIVE = "dre_jax:worker", "dre_jax:alive"
"""Attributes of a trial: the identity of its process, and the time of its last sign of life."""


class OtherWorkers:
    """Signs of life of the running trials of other processes, as this process has seen them."""

    def __init__(self, worker: Mapping[str, Any], grace: float = 0.0) -> None:
        """Begins without trials.

        Args:
          worker: the identity of this process.
          grace: seconds that the program of a lost process may still run.
        """
        self._worker, self._grace = worker, grace
        self._ended_at: dict[int, float] = {}  # when the process of a trial was first seen to have ended
        self._signs: dict[int, tuple[float, float]] = {}  # time of the last sign by trial, and when it was first seen
        self._gave_signs = set[int]()
        self._longest_trial: float | None = None

    def read(self, trials: Iterable[FrozenTrial]) -> None:
        """Takes note of the present state of all trials."""
        now = time.monotonic()
        for trial in trials:
            if trial.state == TrialState.COMPLETE and trial.duration is not None:
                self._longest_trial = max(self._longest_trial or 0.0, trial.duration.total_seconds())
            elif self._is_of_another(trial):
                sign = trial.user_attrs.get(ALIVE, math.inf)
                before, _ = self._signs.setdefault(trial.number, (sign, now))
                if before != sign:
                    self._signs[trial.number] = sign, now
                    self._gave_signs.add(trial.number)

    def is_lost(self, trial: FrozenTrial) -> bool:
        """Returns whether the process of a running trial is lost: another one than this."""
        return self._is_of_another(trial) and self.seconds_until_lost(trial) <= 0

    def may_be_lost(self, trial: FrozenTrial) -> bool:
        """Returns whether it is still unknown if the process of a running trial lives or is lost."""
        worker = trial.user_attrs.get(WORKER)
        if not self._is_of_another(trial) or not 0 < self.seconds_until_lost(trial) < math.inf:
            return False
        return has_ended(worker) or not (trial.number in self._gave_signs or is_of_this_machine(worker))

    def seconds_until_lost(self, trial: FrozenTrial) -> float:
        """Returns how long it takes until the process of a running trial is lost, if it gives no sign of life."""
        worker, now = trial.user_attrs.get(WORKER), time.monotonic()
        seconds = seconds_until_lost(worker, self._sign(trial), self._longest_trial)
        if has_ended(worker):
            seconds = min(seconds, self._ended_at.setdefault(trial.number, now) - now)
        return seconds + self._grace

    def _is_of_another(self, trial: FrozenTrial) -> bool:
        return trial.state == TrialState.RUNNING and trial.user_attrs.get(WORKER) != self._worker

    def _sign(self, trial: FrozenTrial) -> SignOfLife:
        now, sign = time.monotonic(), trial.user_attrs.get(ALIVE, math.inf)
        before, since = self._signs.get(trial.number, (sign, now))
        return SignOfLife(sign, now - since if before == sign else 0.0)
