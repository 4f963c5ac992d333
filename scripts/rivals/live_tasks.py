"""Tasks of live spaces, with past studies of random configurations of other tasks."""

import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dre_jax.space.space import Params
from dre_jax.tuning import Evaluated, Space
from rivals.problems import Problem, Task
from rivals.yahpo import YahpoSpace, load_yahpo

_SAMPLE = 20_000
_DESIGN = 2


@dataclass(frozen=True)
class LiveFamily:
    """A space of YAHPO. Raises `ConfigError` where its files are read, as `load_yahpo` does."""

    name: str
    folder: Path
    n_tasks: int
    """Maximum number of tasks that are searched."""
    n_studies: int
    """Maximum number of past studies."""
    n_trials: int
    """Number of trials of each."""
    past: str = "own"
    """What past trials have values of: "own", other tasks; "reversed", those negated; "unrelated", another space."""
    other: str | None = None
    """The other space."""

    def groups(self) -> range:
        """Returns the numbers of the groups of tasks that share their past."""
        return range(len(split_tasks(self._load(), self.n_tasks, self.n_studies)))

    def tasks(self, group: int, seed: int) -> list[Task]:
        """Returns the tasks of a group; designs and past studies are drawn by seed."""
        live = self._load()
        names, others = split_tasks(live, self.n_tasks, self.n_studies)[group]
        random = np.random.default_rng([zlib.crc32(self.name.encode()), group, seed])
        studies = [str(name) for name in random.permutation(others)[: self.n_studies]]
        problem = Problem(live.space, {name: self._study(live, name, random) for name in studies})
        designs = [random_params(live.space, _DESIGN, random) for _ in names]
        return [
            Task(name, problem, design, evaluate=partial(live.evaluate, name))
            for name, design in zip(names, designs, strict=True)
        ]

    def samples(self) -> dict[str, np.ndarray]:
        """Returns the values of many random configurations, by task."""
        live = self._load()
        drawn = random_params(live.space, _SAMPLE, np.random.default_rng(0))
        return {name: live.evaluate(name, drawn) for name in live.tasks[: self.n_tasks]}

    def _study(self, live: YahpoSpace, task: str, random: np.random.Generator) -> list[Evaluated]:
        points = random.random((self.n_trials, len(live.space)))
        params = list(map(live.space.params, points))
        if self.past == "unrelated" and self.other is not None:
            other = load_yahpo(self.folder, self.other)
            columns = np.arange(len(other.space)) % points.shape[1]  # cut, or repeated
            name = other.tasks[live.tasks.index(task) % len(other.tasks)]
            values = other.evaluate(name, list(map(other.space.params, points[:, columns])))
        else:
            values = live.evaluate(task, params) * (-1.0 if self.past == "reversed" else 1.0)
        return list(map(Evaluated, params, values.tolist()))

    def _load(self) -> YahpoSpace:
        return load_yahpo(self.folder, self.name)


def split_tasks(live: YahpoSpace, n_tasks: int, n_studies: int) -> list[tuple[list[str], list[str]]]:
    """Returns groups of tasks, each with the tasks of its past studies.

    All are one group if the tasks that are not searched are enough for the past; else each is a group, with all others.
    """
    tasks, others = list(live.tasks[:n_tasks]), list(live.tasks[n_tasks:])
    if len(others) >= n_studies:
        return [(tasks, others)]
    return [([task], [other for other in live.tasks if other != task]) for task in tasks]


def random_params(space: Space, n: int, random: np.random.Generator) -> list[Params]:
    """Returns random configurations of a space without rules."""
    return [space.params(point) for point in random.random((n, len(space)))]
