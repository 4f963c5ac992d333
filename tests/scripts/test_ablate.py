"""The ablations: what is run, its figures against plain loops, and cross-validation from end to end."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dre_jax.data import Results, write_dataset
from dre_jax.errors import ConfigError
from dre_jax.report import compare

T = 12
SIZES = {"big": 7, "small": 4}


@pytest.fixture(scope="module")
def ablations(part):
    """The script's modules by name."""
    return {name: part(f"ablations.{name}") for name in ("studies", "tables")}


def test_every_study_has_variants_that_differ(ablations):
    for name, study in ablations["studies"].STUDIES.items():
        assert len(set(study.variants.values())) == len(study.variants) > 1, name
        assert study.question.endswith("?")


def test_test_tasks_are_kept_apart(part, tmp_path):
    """Nothing is chosen on them."""
    script = part("ablate")
    assert {name for name, study in script.STUDIES.items() if study.split != "validation"} == {"test"}
    assert "test" not in script.OF_VALIDATION
    studies = [script.STUDIES[name] for name in ("test", "hedge", "rivals")]
    jobs = script.jobs_of(studies, ["bundled"], 2, ("test0",), tmp_path)
    counts = {split: sum(job.split == split for job in jobs) for split in ("test", "validation")}
    # Four search spaces, two seeds; "hedge" and "rivals" share two variants.
    assert counts == {"test": 3 * 4 * 2, "validation": (7 + 5 - 2) * 4 * 2}


def results_of(seed, offset):
    """Two search spaces of unequal size, two meta-trainings, two designs."""
    rng = np.random.default_rng(seed)

    def trace():
        return np.minimum(np.maximum.accumulate(rng.uniform(0, 0.8, T + 1)) + offset, 1.0)

    names = [f"{s}:test{d}" for s in range(2) for d in range(2)]
    return Results({s: {f"t{i}": {name: trace() for name in names} for i in range(n)} for s, n in SIZES.items()})


def test_figures_against_plain_loops(ablations):
    found = {"first": results_of(0, 0.0), "second": results_of(1, 0.05), "third": results_of(2, 0.1)}
    comparison = compare(found)
    regret = {
        name: {(space, dataset, seed): 1 - trace for space, dataset, seed, trace in results.runs()}
        for name, results in found.items()
    }

    def of_run(name, run, what):
        if what == "area":
            return sum(regret[name][run][t] for t in range(1, T + 1)) / T
        kind, _, t = what.split()
        own = regret[name][run][int(t)]
        if kind == "regret":
            return own
        others = [regret[other][run][int(t)] for other in found]
        return 1 + sum(other < own for other in others) + (sum(other == own for other in others) - 1) / 2

    def of_tasks(name, what):
        """By search space, a number a task."""
        runs = {
            (space, f"t{i}"): [r for r in regret[name] if r[:2] == (space, f"t{i}")]
            for space in SIZES
            for i in range(SIZES[space])
        }
        means = {task: np.mean([of_run(name, run, what) for run in own]) for task, own in runs.items()}
        return {space: np.array([mean for task, mean in means.items() if task[0] == space]) for space in SIZES}

    def error(spaces):
        return np.std(spaces, ddof=1) / np.sqrt(len(spaces))

    for kind, whats in (("regret", ["regret at 5", "regret at 10", "area"]), ("rank", ["rank at 5", "rank at 10"])):
        names, tasks = ablations["tables"].by_task(comparison, kind)
        assert names == whats
        pooled, by_space = (list(ablations["tables"].beside(tasks, over)) for over in ("runs", "spaces"))
        for i, what in enumerate(whats):
            own = {name: of_tasks(name, what) for name in found}
            flat = {name: np.concatenate(list(spaces.values())) for name, spaces in own.items()}
            raw = [stats.wilcoxon(flat[name], flat["first"]).pvalue for name in ("second", "third")]
            adjusted = [min(1, 2 * p) if p == min(raw) else max(p, min(1, 2 * min(raw))) for p in raw]
            for j, name in enumerate(found):
                less = {space: own[name][space] - own["first"][space] for space in SIZES}
                line = pooled[j]
                assert line.mean[i] == pytest.approx(flat[name].mean())
                assert line.difference[i] == pytest.approx((flat[name] - flat["first"]).mean())
                assert line.error[i] == pytest.approx(error(flat[name] - flat["first"]))
                assert line.p[i] == pytest.approx(adjusted[j - 1]) if j else np.isnan(line.p[i])
                line = by_space[j]
                assert line.mean[i] == pytest.approx(np.mean([own[name][space].mean() for space in SIZES]))
                assert line.difference[i] == pytest.approx(np.mean([less[space].mean() for space in SIZES]))
                assert line.error[i] == pytest.approx(np.sqrt(sum(error(less[s]) ** 2 for s in SIZES)) / len(SIZES))


def test_the_smallest_difference_is_that_of_a_test_with_80_percent_power(ablations):
    power = stats.norm.sf(stats.norm.ppf(0.975) - ablations["tables"].SEEN)
    assert power == pytest.approx(0.8, abs=0.001)


METHODS = """
class First:
    def observe_and_suggest(self, X_obs, y_obs, X_pen):
        return 0

class Last:
    def observe_and_suggest(self, X_obs, y_obs, X_pen):
        return len(X_pen) - 1
"""


def test_every_past_task_is_held_out_once_and_nothing_is_done_twice(
    part, ablations, make_space, tmp_path, monkeypatch, capsys, jobs_in_this_process
):
    script = part("ablate")
    file = tmp_path / "ends.py"
    file.write_text(METHODS)
    data = tmp_path / "toy"
    write_dataset(data, [make_space(name, train="abc", validation="vw", seed=i) for i, name in enumerate(("p", "q"))])
    study = ablations["studies"].STUDIES["hedge"]
    ends = replace(study, variants={"first": f"{file}:First", "last": f"{file}:Last"}, trials=25)
    monkeypatch.setitem(script.STUDIES, "hedge", ends)
    out = tmp_path / "out"

    def run(*more):
        given = ["hedge", "--folds", "2", "--seeds", "1", "--designs", "test0,test1", "--trials", "6", "--workers", "1"]
        monkeypatch.setattr("sys.argv", ["ablate.py", *given, "--data", str(data), "--out", str(out), *more])
        script.main()
        return (out / "folds.md").read_text()

    text = run()
    assert "20 runs a variant: 10 past tasks of 2 search spaces, 1 meta-trainings, 2 initial designs." in text
    assert text.count("\n| first |") == text.count("\n| last |") == 4  # regret and rank, of tasks and of search spaces
    assert text[text.index("## ") :].strip() in capsys.readouterr().out
    written = {path: path.stat().st_mtime_ns for path in out.rglob("*.json")}
    assert len(list(out.rglob("runs/*/test-6/*-0.json"))) == 2 * 2 * 2  # variants, folds, spaces
    assert run() == text
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert "10 runs a variant: 5 past tasks of 1 search spaces" in run("--space", "q", "--table-only")


def test_folds_of_test_tasks_are_refused(part, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ablate.py", "test", "--folds", "5", "--out", str(tmp_path)])
    with pytest.raises(ConfigError, match="folds are of past tasks, but test looks at the test tasks"):
        part("ablate").main()
