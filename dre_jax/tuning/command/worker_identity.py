"""Who runs a trial of a shared study, and whether that process is lost.

Host names and process numbers repeat: in containers of one host name, on cloned machines, after a restart. An identity
is therefore drawn at random. A worker looks up whether a process still exists only if both have the same boot and the
same process numbers (a Linux namespace). Otherwise, signs of life decide.
"""

import math
import os
import platform
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SILENCE = 600.0
"""Seconds without a sign of life after which the process of a running trial counts as lost, by default."""
LEAST_SILENCE, _LONGEST_TRIALS = 30.0, 3.0
"""Multiple of the longest trial so far that replaces `SILENCE` where it is shorter, and its minimum in seconds."""
_SELDOM, _SIGNS = 30.0, 4.0
_START, _STATE = 21, 2  # fields of /proc/PID/stat, from 0


class SignOfLife(NamedTuple):
    """The last sign of life of a running trial."""

    time: float
    """In seconds since the epoch, by the clock of the trial's machine; infinite without one."""
    unchanged: float = 0.0
    """Seconds since this process first saw it: the clocks of machines may differ by more than trials take."""


def new_worker(silence: float | None) -> dict[str, Any]:
    """Returns the identity of this process, which counts as lost after some seconds without a sign of life.

    Without a number, the time is `SILENCE`, or less where trials are short.

    Example:
      >>> new_worker(600.0)["id"] == new_worker(600.0)["id"]
      False
    """
    return {
        "id": uuid.uuid4().hex,
        "host": platform.node(),  # for people
        "process": os.getpid(),
        "started": _process(os.getpid())[0],
        "machine": _machine(),
        "silence": SILENCE if silence is None else silence,
        "is_shortened": silence is None,
    }


def seconds_between_signs(worker: Mapping[str, Any]) -> float:
    """Returns how often a worker gives a sign of life: a few times before it would count as lost."""
    least = LEAST_SILENCE if worker["is_shortened"] else worker["silence"]
    return float(min(_SELDOM, least / _SIGNS))


def seconds_until_lost(worker: Any, sign: SignOfLife, longest_trial: float | None = None) -> float:
    """Returns how long a process may still be silent; infinite for trials of other tools, which give no signs.

    The longest trial of the study so far is in seconds; None if none has ended.
    """
    if sign.time == math.inf:
        return math.inf
    # Without an identity the trial has just started, or an earlier version of the library runs it.
    silence = worker["silence"] if isinstance(worker, Mapping) else SILENCE
    shortest = silence
    if longest_trial is not None and isinstance(worker, Mapping) and worker.get("is_shortened"):
        shortest = min(silence, max(LEAST_SILENCE, _LONGEST_TRIALS * longest_trial))
    return float(min(silence - (time.time() - sign.time), shortest - sign.unchanged))


def is_of_this_machine(worker: Any) -> bool:
    """Returns whether this process can see whether a worker has ended."""
    machine = _machine()
    return isinstance(worker, Mapping) and machine is not None and machine == worker["machine"]


def has_ended(worker: Any) -> bool:
    """Returns whether a process of this machine has ended; another one may have its number by now."""
    if not is_of_this_machine(worker):
        return False
    try:
        os.kill(worker["process"], 0)
    except ProcessLookupError:
        return True
    except OSError:  # of another user
        pass
    started, state = _process(worker["process"])
    return state in ("Z", "X") or started not in (None, worker["started"])


def _machine() -> str | None:
    """Returns the boot and the namespace that processes share if they see each other's numbers; None if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _process(number: int) -> tuple[str | None, str | None]:
    """Returns the start of a process in ticks since the boot, and its state; None where they are unknown."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        return fields[_START - _STATE], fields[0]
    except (OSError, IndexError):
        return None, None
