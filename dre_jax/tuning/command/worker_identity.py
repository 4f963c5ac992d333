"""Who runs a trial of a shared study, and whether that process is lost.

Host names and process numbers repeat: in containers of one host name, on cloned machines, after a restart. An identity
is therefore drawn at random. Whether a process still exists is asked only of those with the same boot and the same
process numbers (a Linux namespace); everywhere else, its signs of life say so.
"""

import os
import platform
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SILENCE = 600.0
"""Seconds without a sign of life after which the process of a running trial counts as lost, by default."""
_SELDOM, _SIGNS = 30.0, 4.0
_START, _STATE = 21, 2  # fields of /proc/PID/stat, from 0


def new_worker(silence: float) -> dict[str, Any]:
    """Returns the identity of this process, which counts as lost after so many seconds without a sign of life.

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
        "silence": silence,
    }


def seconds_between_signs(worker: Mapping[str, Any]) -> float:
    """Returns how often a worker gives a sign of life: a few times before it would count as lost."""
    return float(min(_SELDOM, worker["silence"] / _SIGNS))


def is_lost(worker: Any, sign_of_life: float) -> bool:
    """Returns whether the process of a running trial has ended, or has been silent for too long.

    The sign of life is in seconds since the epoch; infinite without one, as of other tools' trials.
    """
    if not isinstance(worker, Mapping):  # the trial has just started, or an earlier version of the library runs it
        return time.time() - sign_of_life > SILENCE
    if time.time() - sign_of_life > worker["silence"]:
        return True
    machine = _machine()
    return machine is not None and machine == worker["machine"] and _has_ended(worker)


def _has_ended(worker: Mapping[str, Any]) -> bool:
    """Returns whether a process of this machine has ended; another one may have its number by now."""
    try:
        os.kill(worker["process"], 0)
    except ProcessLookupError:
        return True
    except OSError:  # of another user
        pass
    started, state = _process(worker["process"])
    return state in ("Z", "X") or started not in (None, worker["started"])


def _machine() -> str | None:
    """Returns what the processes have in common that see each other by their numbers; None if it is unknown."""
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
