"""How far methods are behind random search on live functions, with useful, unrelated and reversed past studies."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dre_jax.errors import ConfigError, DreError
from rivals.jobs import Job, Study, read_searches, run_jobs
from rivals.live_tasks import LiveFamily
from rivals.registry import RIVALS

_N_STUDIES, _N_TRIALS = 10, 40  # of a past


class Sizes(NamedTuple):
    """How much is searched."""

    n_tasks: int
    """Maximum number of tasks of a space."""
    n_trials: int
    """Of each search, after the design."""
    n_seeds: int
    """Designs of each task."""


class Curves(NamedTuple):
    """What a method found on a task."""

    family: str
    task: str
    sample: np.ndarray
    """Values of many random configurations, f64[n]."""
    values: np.ndarray
    """Of all trials, f64[seeds, T + 2]; a design of two comes first."""


def live_curves(
    yahpo: Path, spaces: Sequence[str], method: str, past: str, sizes: Sizes, *, out: Path, workers: int
) -> Iterator[Curves]:
    """Yields what a method found on each task; runs what is missing in a file. Raises `DreError` if a search fails.

    Args:
      yahpo: a checkout of `yahpo_data`.
      spaces: of it; the unrelated past of each is of the space before.
      method: one of `rivals.registry`.
      past: "own", "reversed" or "unrelated".
      sizes: how much is searched.
      out: the file.
      workers: number of processes.
    """
    if method not in RIVALS:
        raise ConfigError(f"on live spaces a method must be one of {', '.join(RIVALS)}, but got {method!r}")
    if past == "unrelated" and len(spaces) < 2:
        raise ConfigError(f"an unrelated past needs at least two live spaces, but got {len(spaces)}")
    families = [
        LiveFamily(space, yahpo, sizes.n_tasks, _N_STUDIES, _N_TRIALS, past, spaces[i - 1])
        for i, space in enumerate(spaces)
    ]
    done = frozenset(read_searches(out, sizes.n_trials))
    jobs = [
        Job(method, family, group, seed, sizes.n_trials, math.inf, done)
        for family in families
        for group in family.groups()
        for seed in range(sizes.n_seeds)
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    if run_jobs(jobs, out, workers):
        raise DreError("each live search must end, but one failed, with the error above")
    searches = read_searches(out, sizes.n_trials)
    for family in families:
        for name, sample in family.samples().items():
            found = [searches.get(Study(method, family.name, name, seed)) for seed in range(sizes.n_seeds)]
            values = [each.values[: sizes.n_trials + 2] for each in found if each is not None]
            if values:
                yield Curves(family.name, name, sample, np.array(values))
