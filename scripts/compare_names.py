"""Whether names of hyperparameters say where good values lie: a belief by name, with one search space left out.

``python scripts/compare_names.py --tables DIR [--tuners gp names shuffled] [--tasks 6] [--out names.jsonl]``

DIR has a folder of each search space: those of ``make_unseen_data.py``, or with a `space.json` beside the tables. The
bundled search spaces are added. `names` has the beliefs of `dre_jax.tuning.space.names`, learned from all other search
spaces; `shuffled` gives the hyperparameters of the space each other's densities. Finished runs are in the file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from bundled.unseen import SPACES as UNSEEN
from compare_live import random
from live import contestants
from live.models import ModelFamily
from markdown_tables import markdown_table

from dre_jax.data import bundled, load_space
from dre_jax.data.columns import read_descriptor
from dre_jax.data.files import write_json
from dre_jax.search.weighting import log_belief
from dre_jax.tuning import Categorical, EngineConfig, Space, read_space
from dre_jax.tuning.space.beliefs import weight_after
from dre_jax.tuning.space.descriptors import from_descriptor
from dre_jax.tuning.space.names import NameBeliefs, NumberBelief, canonical_name, choice_key, log_densities_by_name

Floats = npt.NDArray[np.float64]
AT = (1, 5, 10, 25, 50)
TOP, PSEUDO_ROWS, PSEUDO_SPACES = 0.1, 3.0, 1.0
"""Share of the rows that are good; rows at random beside them; search spaces beside the others that know nothing."""
BANDWIDTH = 0.06
"""Of the kernel density, of the range of the logarithms (or of the values where 0 is one)."""
KNOTS = 33


@dataclass(frozen=True, eq=False)
class Family:
    """Tables of a search space."""

    name: str
    space: Space
    tasks: Mapping[str, tuple[Floats, Floats]]
    """Columns f64[n, D] and responses f64[n], higher is better."""

    @cached_property
    def configurations(self) -> dict[str, list[dict[str, Any]]]:
        """Of every task's rows."""
        return {task: [self.space.decode(row) for row in x] for task, (x, _) in self.tasks.items()}


def families(folder: Path) -> dict[str, Family]:
    """All search spaces, by name."""
    found = {}
    for name in bundled.spaces():
        space = from_descriptor(read_descriptor(bundled.path(), name) or {})
        found[name] = Family(name, space, _tasks(bundled.load(name)))
    for path in sorted(one.parent for one in folder.glob("*/meta-train-dataset.json") if one.parent.name != "all"):
        if (path / "space.json").exists():
            names = json.loads((path / "meta-train-dataset.json").read_text()).keys()
            tasks: dict[str, tuple[Floats, Floats]] = {}
            for name in names:
                if name.endswith((".error", ".r2")):
                    tasks |= _tasks(load_space(path, name), name.rpartition(".")[2])
            name = f"{path.name}-2" if path.name in found else path.name
            found[name] = Family(name, read_space(path / "space.json"), tasks)
        elif path.name in UNSEEN:
            found[path.name] = Family(path.name, UNSEEN[path.name].space, _tasks(load_space(path, path.name)))
    return found


def _tasks(data: Any, suffix: str = "") -> dict[str, tuple[Floats, Floats]]:
    tasks = {**data.train, **data.validation, **data.test}
    return {
        name + suffix: (np.asarray(task.X, np.float64), np.asarray(task.y, np.float64))
        for name, task in tasks.items()
        if len(np.unique(task.y)) > 5
    }


def is_log(name: str, spaces: Iterable[Space]) -> bool:
    """Whether a name's numbers are compared by their logarithms: where none is 0."""
    parameters = (p for space in spaces for n, p in space.items() if canonical_name(n) == name)
    return all(p.low > 0 for p in parameters if not isinstance(p, Categorical))


class Marginal:
    """Mean log ratio of good values to all values, of one hyperparameter in one search space."""

    def __init__(self, family: Family, name: str, log: bool) -> None:
        self.parameter = family.space[name]
        self.log = log
        logs = []
        if isinstance(self.parameter, Categorical):
            self.choices = [choice_key(choice) for choice in self.parameter.choices]
        else:
            self.low, self.high = self._axis([self.parameter.low, self.parameter.high])
            self.knots = np.linspace(self.low, self.high, KNOTS)
        for task, (_, y) in family.tasks.items():
            rows = [i for i, params in enumerate(family.configurations[task]) if name in params]
            values = [family.configurations[task][i][name] for i in rows]
            good = y[rows] >= np.quantile(y, 1.0 - TOP)
            if len(rows) < 10 or not good.any():
                continue
            if isinstance(self.parameter, Categorical):
                each = np.array([[choice_key(v) == choice for choice in self.choices] for v in values], float)
            else:
                width = BANDWIDTH * (self.high - self.low) or 1.0
                each = np.exp(-0.5 * ((self._axis(values)[:, None] - self.knots) / width) ** 2)
            everyone = each.mean(axis=0) + 1e-9
            shown = (each[good].sum(axis=0) + PSEUDO_ROWS * everyone) / (good.sum() + PSEUDO_ROWS)
            logs.append(np.log(shown / everyone))
        self.log_ratio: Floats | None = np.mean(logs, axis=0) if logs else None

    def _axis(self, values: Any) -> Floats:
        values = np.asarray(values, np.float64)
        return np.log(values) if self.log else values

    def at(self, knots: Floats) -> Floats:
        """The log ratio at places on the axis; beyond the bounds, that of the nearest one."""
        assert self.log_ratio is not None
        return np.interp(knots, self.knots, self.log_ratio)


class Names:
    """What each search space says of each name."""

    def __init__(self, all_families: Mapping[str, Family]) -> None:
        self.marginals: dict[str, list[tuple[str, Marginal]]] = {}
        spaces = [one.space for one in all_families.values()]
        for family in all_families.values():
            for name in family.space:
                canonical = canonical_name(name)
                marginal = Marginal(family, name, is_log(canonical, spaces))
                if marginal.log_ratio is not None:
                    self.marginals.setdefault(canonical, []).append((family.name, marginal))

    def beliefs(self, left_out: str | None = None) -> NameBeliefs:
        """Beliefs learned from all search spaces but one."""
        numbers, choices = {}, {}
        for name, marginals in self.marginals.items():
            others = [marginal for family, marginal in marginals if family != left_out]
            of_numbers = [one for one in others if not isinstance(one.parameter, Categorical)]
            of_choices = [one for one in others if isinstance(one.parameter, Categorical)]
            if of_numbers:
                low, high = min(one.low for one in of_numbers), max(one.high for one in of_numbers)
                knots = np.linspace(low, high, KNOTS)
                mean = np.sum([one.at(knots) for one in of_numbers], axis=0) / (len(of_numbers) + PSEUDO_SPACES)
                numbers[name] = NumberBelief(of_numbers[0].log, low, high, tuple(mean.tolist()))
            logs: dict[str, list[float]] = {}
            for one in of_choices:
                assert one.log_ratio is not None
                for choice, log in zip(one.choices, one.log_ratio, strict=True):
                    logs.setdefault(choice, []).append(float(log))
            if logs:
                choices[name] = {choice: sum(each) / (len(each) + PSEUDO_SPACES) for choice, each in logs.items()}
        return NameBeliefs(numbers, choices)


def shuffled(table: Floats, space: Space, rng: np.random.Generator) -> Floats:
    """Log densities where each number has those of another one, stretched to its range, and each choice another's."""
    table = table.copy()
    is_choice = np.array([isinstance(space[name], Categorical) for name in space.sequence])
    rows = np.flatnonzero(~is_choice)
    table[rows] = table[np.roll(rows, 1 + rng.integers(max(len(rows) - 1, 1)))]
    for i in np.flatnonzero(is_choice):
        n = space.layout.parts[i].levels
        level = np.minimum((np.linspace(0.0, 1.0, table.shape[1]) * n).astype(int), n - 1)
        shares = [table[i][level == k][0] for k in range(n)]
        table[i] = np.roll(shares, 1 + rng.integers(max(n - 1, 1)))[level]
    return table


@lru_cache(maxsize=4)
def _method(name: str) -> tuple[Any, Any]:
    import jax

    from dre_jax.methods import find
    from dre_jax.tuning.engine import DEFAULT_SETTINGS

    method = find(name).make(dict(DEFAULT_SETTINGS) if name == "gp" else None)
    return method, jax.jit(lambda history, candidates, key: method.acquire(None, history, candidates, key))


def run(name: str, family: Family, task: str, table: Floats | None, beta: float, seed: int) -> Floats:
    """Responses of the trials of one run on a table; log densities f64[P, K + 1] are a belief."""
    import jax
    import jax.numpy as jnp

    from dre_jax.search.history import Candidates, make_history
    from dre_jax.search.precision import precision_of
    from dre_jax.tuning.response_clipping import clip_responses

    rng, chosen, (x, y) = np.random.default_rng(seed), list[int](), family.tasks[task]
    layout = family.space.layout
    points = np.array([family.space.point(params) for params in family.configurations[task]])
    log = None if table is None else log_belief(layout, table - table.max(axis=1, keepdims=True), points, np)
    method, acquire = _method(name)
    slots = -(-len(x) // 320) * 320
    with precision_of(method) as dtype:
        columns = jnp.asarray(np.pad(x, ((0, slots - len(x)), (0, 0))), dtype)
        for trial in range(min(max(AT), len(x))):
            free = ~np.isin(np.arange(len(x)), chosen)
            if trial < 4:
                noise = rng.gumbel(size=len(x))
                values = noise
                if log is not None and trial % 2 == 0:  # the most likely row, a random one, a draw, a random one
                    values = log + (noise if trial else 0.0)
            else:
                capacity = 32 if trial <= 32 else 64
                history = make_history(x[chosen], clip_responses(y[chosen]), capacity, dtype)
                where = jnp.asarray(np.pad(free, (0, slots - len(x))))
                key = jax.random.fold_in(jax.random.key(seed), trial)
                values = np.asarray(acquire(history, Candidates(columns, where), key))[: len(x)]
                if table is not None and log is not None:
                    told = clip_responses(y[chosen])
                    values = values + weight_after(table, layout, points[chosen], told, beta) * log
            chosen.append(int(np.argmax(np.where(free, values + 1e-9 * rng.random(len(x)), -np.inf))))
    return y[chosen]


def regret(y: Floats, responses: Floats) -> list[float]:
    """After every trial: 0 at the best row of the table, 1 at its median; a worse one counts as 1."""
    best, median = y.max(), np.median(y)
    return np.clip((best - np.maximum.accumulate(responses)) / (best - median), 0.0, 1.0).tolist()


def run_on_table(names: Names, tuner: str, family: Family, task: str, beta: float, seed: int) -> list[float]:
    """Regret after every trial on a table; beliefs are of all other spaces."""
    by_name, table = tuner in ("names", "shuffled"), None
    if by_name:
        table = log_densities_by_name(names.beliefs(family.name), family.space)
        table = shuffled(table, family.space, np.random.default_rng(seed)) if tuner == "shuffled" else table
    return regret(family.tasks[task][1], run("gp" if by_name else tuner, family, task, table, beta, seed))


def studies(all_families: Mapping[str, Family], given: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    for family in given.spaces or all_families:
        tasks = sorted(all_families[family].tasks)
        order = np.random.default_rng(zlib.crc32(family.encode())).permutation(len(tasks))
        usable = [tasks[i] for i in order if _has_spread(all_families[family].tasks[tasks[i]][1])]
        for task, seed, tuner in itertools.product(usable[: given.tasks], range(given.seeds), given.tuners):
            yield (tuner, family, task, seed)


def live_studies(given: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    for number, family, tuner in itertools.product(range(given.tasks), given.spaces or UNSEEN, given.tuners):
        yield (tuner, family, str(number), 0)


def run_live(names: Names, tuner: str, family: str, number: int) -> list[float]:
    """Regret after every trial on a model that is fitted while it is tuned; the beliefs are of all other spaces."""
    task = ModelFamily(family).draw(random(family, "task", number))
    with patch("dre_jax.tuning.engine.read_name_beliefs", lambda: names.beliefs(family)):
        regrets = contestants.run("gp-names" if tuner == "names" else tuner, task, max(AT), number, None)
    return np.minimum(regrets, 1.0).tolist()


def _has_spread(y: Floats) -> bool:
    return bool(y.max() > np.median(y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--spaces", nargs="*", help="to be left out, one after the other; by default all")
    parser.add_argument("--tuners", nargs="+", default=["gp", "names", "shuffled"], help="`tpe` live only")
    parser.add_argument("--tasks", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--beta", type=float, default=EngineConfig().belief_weight)
    parser.add_argument("--live", action="store_true", help="tune models that are fitted, of make_unseen_data.py")
    parser.add_argument("--out", type=Path, default=Path("names.jsonl"))
    parser.add_argument(
        "--write", type=Path, help="file for the beliefs of all search spaces, in place of a comparison"
    )
    given = parser.parse_args()
    from dre_jax.runtime.setup import prepare

    prepare(1)
    warnings.simplefilter("ignore")
    all_families = families(given.tables)
    names = Names(all_families)
    if given.write:
        write_json(given.write, rounded(names.beliefs()._asdict()))
        return
    done = _read(given.out)
    wanted = list(live_studies(given) if given.live else studies(all_families, given))
    with given.out.open("a") as out:
        for study in wanted:
            if study in done:
                continue
            tuner, family, task, seed = study
            if given.live:
                done[study] = run_live(names, tuner, family, int(task))
            else:
                done[study] = run_on_table(names, tuner, all_families[family], task, given.beta, seed)
            out.write(json.dumps([*study, done[study]]) + "\n")
            out.flush()
    print(tables({study: done[study] for study in wanted}, given.tuners))


def rounded(content: Any) -> Any:
    """JSON with numbers of three digits."""
    if isinstance(content, dict):
        return {name: rounded(value) for name, value in sorted(content.items())}
    if isinstance(content, tuple):
        return [rounded(value) for value in content]
    return round(content, 3) if isinstance(content, float) else content


def _read(path: Path) -> dict[tuple[Any, ...], list[float]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {tuple(row[:4]): row[4] for row in map(json.loads, lines)}


def tables(regrets: Mapping[tuple[Any, ...], list[float]], tuners: Sequence[str]) -> str:
    """Mean regrets over search spaces, and differences to the first tuner, paired, with standard errors over spaces."""
    spaces = list(dict.fromkeys(study[1] for study in regrets))
    by_space = {
        (tuner, space): np.mean([_at(r) for s, r in regrets.items() if s[:2] == (tuner, space)], axis=0)
        for tuner in tuners
        for space in spaces
    }
    rows = []
    for tuner in tuners:
        values = np.array([by_space[tuner, space] for space in spaces])
        rows.append([f"`{tuner}`", *_cells(values, "")])
        if tuner != tuners[0]:
            gaps = values - np.array([by_space[tuners[0], space] for space in spaces])
            rows.append([f"`{tuner}` - `{tuners[0]}`", *_cells(gaps, "+")])
    return markdown_table(["tuner", *(f"regret at {t}" for t in AT)], rows)


def _cells(values: Floats, sign: str) -> list[str]:
    """Means over search spaces f64[S, T], with standard errors."""
    errors = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return [f"{mean:{sign}.3f} ± {error:.3f}" for mean, error in zip(values.mean(axis=0), errors, strict=True)]


def _at(regrets: Sequence[float]) -> Floats:
    return np.array([regrets[min(t, len(regrets)) - 1] for t in AT])


if __name__ == "__main__":
    main()
