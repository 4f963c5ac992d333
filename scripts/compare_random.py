"""Test on tables whether methods are behind random search: one-sided, with useful, unrelated and reversed past tasks.

``python scripts/compare_random.py --data bundled DIR ... --out OUT [--methods gp-mixture hedged-prior] [--at 10 20]``

Folders are in HPO-B's layout. The validation tasks of a search space are searched, with at most ten training tasks of
60 trials as the past; each task of training and validation, with the others as its past, if there are fewer than eight
training tasks; the test tasks, by methods that do not learn, if there are no others. The unrelated past is that of the
search space before. Regret is 0 at the best row of a task and 1 at its median row, and that of random search is its
expectation. Rerun the command to resume. The exit status is 1 if a method is behind.

``--yahpo DIR --spaces rbv2_rpart iaml_glmnet`` adds live functions: DIR is a checkout of the public repository
`slds-lmu/yahpo_data`, and the expectation is that of random search in 20,000 random configurations.

``--functions branin hartmann-6 mixed-5`` adds tasks of families of test functions, for methods that do not learn. Those
that are not in JAX search tables of 800 random configurations.

A second table compares methods with a past with `gp-mixture`, the tuner's method without one, on the same tasks and
designs, from 40 trials on: the difference, pairs of a task and a past that are behind, and the trials that reach what
it has after 40.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command_line import errors_in_one_line
from derive_data import Derivation, Folding, derive, draw_designs, fold, folder
from rivals.outcomes import scaled_regret
from rivals.random_gaps import Sizes, live_curves
from scipy.special import gammaln
from scipy.stats import t as student_t

from dre_jax.data import SearchSpace, Task
from dre_jax.data.hpob import list_spaces, load_space, write_dataset
from dre_jax.data.tasks import unit_scale
from dre_jax.errors import ConfigError
from dre_jax.functions import bench
from dre_jax.functions.families import Family
from dre_jax.hpob.jobs import Job, collect, make_jobs, run_jobs
from dre_jax.methods import find
from dre_jax.runtime.setup import prepare
from dre_jax.tuning.objectives.single import DEFAULT_METHOD

PASTS = ("own", "unrelated", "reversed")
MIN_TASKS = 8
"""Number of training tasks from which validation tasks are searched."""
DESIGNS = ("test0", "test1", "test2")
LEVEL = 0.05
N_SAMPLE, N_TABLE = 20_000, 800
"""Numbers of random configurations of a function: which decide what random search is expected to reach, and of a table
that methods on the host search."""
BUDGET, MARGIN = 40, 0.05
"""Number of trials, and the regret beyond which a search with a past is behind going alone."""


class Gap(NamedTuple):
    """How far a method is behind random search on one task, from several designs."""

    variant: str
    """Method and past."""
    family: str
    """A search space."""
    task: str
    regrets: np.ndarray
    """f64[designs, T + 1]: the method's minus the expectation of random search."""
    expected: np.ndarray
    """f64[designs, T + 1]: the regret of random search."""

    @property
    def mean(self) -> np.ndarray:
        """The method's regret, the mean over designs, f64[T + 1]."""
        return np.asarray((self.regrets + self.expected).mean(axis=0))


def main(arguments: list[str] | None = None) -> int:
    """Runs what is missing, prints the table, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[], help="folders in HPO-B's layout, or `bundled`")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=["gp-mixture", "hedged-prior"])
    parser.add_argument("--pasts", nargs="+", choices=PASTS, default=list(PASTS))
    parser.add_argument("--at", type=int, nargs="+", default=[10, 20, 40], help="numbers of trials")
    parser.add_argument("--together", nargs="+", default=[], help="prefixes of search spaces that count as one family")
    parser.add_argument("--test-rows", type=int, default=800, help="maximum number of rows of a searched task")
    parser.add_argument("--yahpo", type=Path, help="a checkout of yahpo_data")
    parser.add_argument("--spaces", nargs="+", default=["rbv2_rpart", "iaml_glmnet"], help="live spaces")
    parser.add_argument("--functions", nargs="+", default=[], help="families of test functions without noise")
    parser.add_argument("--live-tasks", type=int, default=5, help="maximum number of tasks of a live space or family")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args(arguments)
    prepare()
    if not args.data and args.yahpo is None and not args.functions:
        raise ConfigError("methods are compared on --data, --yahpo or --functions, but got none")
    spaces = [load_space(folder(data), name) for data in args.data for name in list_spaces(folder(data))]
    families = [bench.find_family(name) for name in args.functions]
    tables = [function_table(family, args.live_tasks) for family in families]
    gaps, failures = list[Gap](), list[str]()
    for past in args.pasts:
        for method in args.methods:
            transfers = find(method).transfer
            searched = [space for space in spaces if not transfers or has_past(space)]
            searched += tables if is_on_host(method) else []
            if searched and (transfers or past == args.pasts[0]):
                folders = list(write_folders(searched, past, args.out / "data" / past, args.test_rows))
                options = {"designs": DESIGNS, "trials": max(args.at), "split": "test"}
                jobs = make_jobs([method], folders, out=args.out / "runs" / past, **options)
                failures += run_jobs(jobs, args.workers, f"{method}, {past}")
                gaps += gaps_of(jobs, method, past)
            if args.yahpo is not None and (transfers or past == args.pasts[0]):
                gaps += live_gaps(args, method, past)
    for method in [method for method in args.methods if not (find(method).transfer or is_on_host(method))]:
        for family in families:
            gaps += function_gaps(family, method, args.live_tasks, max(args.at), args.out / "functions")
    gaps = [gap._replace(family=family_of(gap.family, args.together)) for gap in gaps]
    print(table(gaps, args.at))
    if {DEFAULT_METHOD} < {gap.variant for gap in gaps} and max(args.at) >= BUDGET:
        print(f"\n{alone_table(gaps, args.at)}")
    return int(bool(failures) or any(behind_random(gaps, args.at).values()))


def family_of(space: str, prefixes: Iterable[str]) -> str:
    """Returns the first prefix that a search space's name has, or its name."""
    return next((prefix for prefix in prefixes if space.startswith(prefix)), space)


def write_folders(spaces: Sequence[SearchSpace], past: str, out: Path, test_rows: int) -> Iterator[str]:
    """Yields folders of the tasks to search with their past tasks, which are written if they are not there."""
    previous = {space.name: spaces[i - 1] for i, space in enumerate(spaces)}
    for space in spaces:
        for number, part in enumerate(parts_of(space)):
            path = out / f"{space.name}-{number}"
            if not path.exists():
                write_dataset(path, [with_past(part, past, previous[space.name], test_rows)])
            yield str(path)


def has_past(space: SearchSpace) -> bool:
    """Returns whether a space has past tasks for the tasks that are searched."""
    return len(space.train) + len(space.validation) > 1


def parts_of(space: SearchSpace) -> Iterator[SearchSpace]:
    """Yields the space with tasks to search as test tasks, and their past tasks as training tasks."""
    tasks = {**space.train, **space.validation}
    if len(space.train) >= MIN_TASKS and space.validation:
        yield replace(space, validation={}, test=space.validation)
    elif has_past(space):
        folding = Folding(len(tasks), ("train", "validation"))
        yield from (fold(space, number, folding) for number in range(len(tasks)))
    else:
        yield replace(space, train={}, validation={})


def with_past(
    space: SearchSpace, past: str, other: SearchSpace, test_rows: int, *, n_tasks: int = 10, n_trials: int = 60
) -> SearchSpace:
    """Returns the space with another past, of at most so many tasks and trials; a past needs training tasks."""
    large = {name: task for name, task in space.test.items() if task.n_rows > test_rows}
    cut = derive(replace(space, test=large), Derivation(test_rows=test_rows))
    test, designs = {**space.test, **cut.test}, {**space.designs, **cut.designs}
    designs = {name: designs.get(name) or draw_designs(task, 2) for name, task in test.items()}
    train = dict(space.train)
    if past == "unrelated":
        columns = np.arange(space.n_columns) % other.n_columns  # cut, or repeated
        train = {f"other {name}": replace(task, X=task.X[:, columns]) for name, task in past_tasks(other).items()}
    elif past == "reversed":
        train = {name: replace(task, y=-task.y) for name, task in train.items()}
    few = Derivation(past_tasks=min(n_tasks, len(train)), past_rows=n_trials)
    return replace(derive(replace(space, train=train), few), test=test, designs=designs)


def past_tasks(space: SearchSpace) -> Mapping[str, Task]:
    """Returns the training tasks of a space, or all that it has."""
    return space.train or {**space.validation, **space.test}


def gaps_of(jobs: Sequence[Job], method: str, past: str) -> Iterator[Gap]:
    """Yields how far a method is behind random search on each task."""
    variant = _variant(method, past)
    for job in jobs:
        if job.method == method:
            space = load_space(folder(job.data), job.space)
            for datasets in collect([job], method).traces.values():
                for name, traces in datasets.items():
                    rows = space.designs[name]
                    task = space.test[name]
                    pairs = [regrets_of(task, rows[design], trace) for design, trace in traces.items()]
                    regret, random = (np.array(curves) for curves in zip(*pairs, strict=True))
                    yield Gap(variant, job.space, name, regret - random, random)


def _variant(method: str, past: str) -> str:
    return f"{method}, {past} past" if find(method).transfer else method


def live_gaps(args: argparse.Namespace, method: str, past: str) -> Iterator[Gap]:
    """Yields how far a method is behind random search on each live task."""
    sizes, out = Sizes(args.live_tasks, max(args.at), len(DESIGNS)), args.out / "live" / f"{past}.jsonl"
    for curves in live_curves(args.yahpo, args.spaces, method, past, sizes, out=out, workers=args.workers):
        regret, random = live_regrets(curves.sample, curves.values)
        yield Gap(_variant(method, past), curves.family, curves.task, regret - random, random)


def function_gaps(family: Family, method: str, n_tasks: int, n_trials: int, out: Path) -> Iterator[Gap]:
    """Yields how far a method is behind random search on each task of a family; finished searches are in ``out``."""
    tasks = [family.draw(bench.random(family.name, "task", i)) for i in range(n_tasks)]
    path, seeds = out / f"{method}-{family.name}-{n_tasks}x{n_trials}.jsonl", len(DESIGNS)
    path.parent.mkdir(parents=True, exist_ok=True)
    searches = bench.search_tasks(
        family, tasks, method=method, n_trials=n_trials + 2, seeds=seeds, path=path, quiet=True
    )
    for i, (task, values) in enumerate(zip(tasks, searches.values, strict=True)):
        points = bench.random(family.name, "sample", i).random((N_SAMPLE, family.n_columns))
        regret, expected = live_regrets(-family.losses(task, points), -values)
        yield Gap(method, family.name, str(i), regret - expected, expected)


def is_on_host(method: str) -> bool:
    """Returns whether a method is not in JAX, so that it chooses from the rows of a table."""
    return find(method).host is not None


def function_table(family: Family, n_tasks: int) -> SearchSpace:
    """Returns tasks of a family as tables of random configurations."""
    tasks = {}
    for i in range(n_tasks):
        task = family.draw(bench.random(family.name, "task", i))
        points = bench.random(family.name, "table", i).random((N_TABLE, family.n_columns))
        columns = np.asarray(family.space.layout.columns(points), np.float32)
        tasks[str(i)] = Task(str(i), columns, -family.losses(task, points))
    return SearchSpace(family.name, test=tasks)


def live_regrets(sample: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the regrets of a method and of random search, two f64[designs, T + 1].

    They are 0 at the best of the sample, and negative beyond it.

    Args:
      sample: values of random configurations, f64[n].
      values: of the trials of each search, f64[designs, T + 2]; a design of two comes first.
    """
    best, median, n = float(sample.max()), float(np.median(sample)), len(sample)
    traces = np.maximum.accumulate(values, axis=1)[:, 1:]
    design, n_trials = np.array([n, n + 1]), traces.shape[1] - 1
    expected = [expected_random(np.append(sample, each[:2]), design, n_trials) for each in values]
    return scaled_regret(traces, best, median), scaled_regret(np.array(expected), best, median)


def regrets_of(task: Task, design: np.ndarray, trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the regrets after each trial of a method and of random search, two f64[T + 1]."""
    response = unit_scale(task.y)
    median = float(np.median(response))
    random = expected_random(response, np.asarray(design), len(trace) - 1)
    return scaled_regret(np.asarray(trace), 1.0, median), scaled_regret(random, 1.0, median)


def expected_random(response: np.ndarray, design: np.ndarray, n_trials: int) -> np.ndarray:
    """Returns the expected best response f64[T + 1] of random rows after a design, none of them twice.

    Example:
      >>> expected_random(np.array([0.0, 0.5, 1.0]), np.array([0]), 2).tolist()
      [0.0, 0.75, 1.0]
    """
    best, rest = response[design].max(), np.sort(np.delete(response, design))
    better, place = np.maximum(rest, best), np.arange(1.0, len(rest) + 1)
    expected = [best]
    for n in range(1, n_trials + 1):
        n_drawn = min(n, len(rest))
        log_ways = np.where(place >= n_drawn, _log_binomial(np.maximum(place, n_drawn) - 1, n_drawn - 1), -np.inf)
        expected.append(better @ np.exp(log_ways - _log_binomial(len(rest), n_drawn)))
    return np.array(expected)


def _log_binomial(n: np.ndarray | float, k: float) -> np.ndarray:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def table(gaps: Sequence[Gap], at: Sequence[int]) -> str:
    """Returns the mean gap of each variant and family, and over families, ± standard error over designs."""
    marks = behind_random(gaps, at)
    lines = ["| method | family | tasks | " + " | ".join(f"at {t}" for t in at) + " |", f"|{' --- |' * (3 + len(at))}"]
    for variant, family, group in _groups(gaps):
        cells = []
        for t in at:
            mean, error, _ = mean_and_error(group, t)
            cells.append(f"{mean:+.3f} ± {error:.3f}{'*' * marks[variant, family, t]}")
        lines.append(f"| {variant} | {family} | {len(group)} | {' | '.join(cells)} |")
    confidence = f"{100 * (1 - LEVEL):.0f} % confidence for all numbers of a method together"
    return f"Regret minus that of random search; *: behind it, with {confidence}.\n\n" + "\n".join(lines)


def alone_table(gaps: Sequence[Gap], at: Sequence[int]) -> str:
    """Returns how far each variant with a past is behind going alone, over pairs of a task and a past."""
    alone = {(gap.family, gap.task): gap for gap in gaps if gap.variant == DEFAULT_METHOD}
    with_past = [gap for gap in gaps if gap.variant != DEFAULT_METHOD and (gap.family, gap.task) in alone]
    shares = (0.5, 0.8)
    lines = [
        f"Regret minus that of {DEFAULT_METHOD}; pairs behind and ahead by more than {MARGIN} after {BUDGET} trials; "
        f"and the trials until the regret is at most that of {DEFAULT_METHOD} after {BUDGET}.\n",
        f"| method | pairs | {' | '.join(f'at {t}' for t in at)} | behind | by at most | ahead "
        f"| {' | '.join(f'{share:.0%} reach it by' for share in shares)} |",
        f"|{' --- |' * (len(at) + 5 + len(shares))}",
    ]
    variants = dict.fromkeys(gap.variant for gap in with_past)
    for name, group in [*((v, [gap for gap in with_past if gap.variant == v]) for v in variants), ("all", with_past)]:
        pairs = [(gap, alone[gap.family, gap.task]) for gap in group]
        paired = [gap._replace(regrets=gap.regrets - other.regrets) for gap, other in pairs]
        cells = ["{:+.3f} ± {:.3f}".format(*mean_and_error(paired, t)[:2]) for t in at]
        behind = np.array([gap.mean[BUDGET] - other.mean[BUDGET] for gap, other in pairs])
        needed = np.array([trials_until(gap.mean, other.mean[BUDGET]) for gap, other in pairs])
        cells += [str(np.sum(behind > MARGIN)), f"{behind.max():.3f}", str(np.sum(behind < -MARGIN))]
        cells += [f"{np.quantile(needed, share, method='higher'):.0f}" for share in shares]
        lines.append(f"| {name} | {len(pairs)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def trials_until(regrets: np.ndarray, target: float) -> float:
    """Returns the first number of trials with at most a regret; infinite if there is none.

    Example:
      >>> trials_until(np.array([0.9, 0.4, 0.2]), 0.4), trials_until(np.array([0.9, 0.4]), 0.1)
      (1.0, inf)
    """
    reached = np.flatnonzero(regrets <= target + 1e-12)
    return float(reached[0]) if len(reached) else np.inf


def behind_random(gaps: Sequence[Gap], at: Sequence[int]) -> dict[tuple[str, str, int], bool]:
    """Returns whether a variant is behind on a family after t trials: one-sided, corrected for all tests of a variant.

    Tasks are fixed, and designs are drawn. The correction is Bonferroni's.
    """
    groups = list(_groups(gaps))
    result = {}
    for variant, family, group in groups:
        level = LEVEL / (len(at) * sum(other == variant for other, *_ in groups))
        for t in at:
            mean, error, freedom = mean_and_error(group, t)
            result[variant, family, t] = bool(mean - student_t.ppf(1.0 - level, freedom) * error > 0.0)
    return result


def _groups(gaps: Sequence[Gap]) -> Iterator[tuple[str, str, list[Gap]]]:
    """Yields the gaps of each variant and family, and those over all families of a variant."""
    for variant in dict.fromkeys(gap.variant for gap in gaps):
        of_variant = [gap for gap in gaps if gap.variant == variant]
        for family in dict.fromkeys(gap.family for gap in of_variant):
            yield variant, family, [gap for gap in of_variant if gap.family == family]
        yield variant, "all", of_variant


def mean_and_error(gaps: Iterable[Gap], t: int) -> tuple[float, float, int]:
    """Returns the mean over tasks after t trials, its standard error over designs, and the degrees of freedom."""
    values = [gap.regrets[:, t] for gap in gaps]
    variances = [each.var(ddof=1) / len(each) for each in values]
    mean = float(np.mean([each.mean() for each in values]))
    return mean, float(np.sqrt(np.sum(variances))) / len(values), sum(len(each) - 1 for each in values)


if __name__ == "__main__":
    with errors_in_one_line():
        sys.exit(main())
