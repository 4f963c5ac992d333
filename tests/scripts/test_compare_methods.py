"""The comparison of methods, and tasks on which the past misleads."""

import numpy as np
import pytest
from scipy import stats

from dre_jax.data import Results, read_results, write_dataset
from dre_jax.errors import ConfigError
from dre_jax.methods.registry import real_name
from dre_jax.report import compare


@pytest.fixture(scope="module")
def misled(part):
    """The script's module of tasks on which the past misleads."""
    return part("comparing.misled")


@pytest.mark.slow
@pytest.mark.thorough
def test_the_script_from_end_to_end(part, tmp_path, monkeypatch, make_space, capsys, jobs_in_this_process):
    """Results, tables and reports of the tasks as they are, reversed and permuted; a second run computes nothing."""
    spaces = [make_space(name, test="xy", seed=i) for i, name in enumerate(("p", "q"))]
    write_dataset(tmp_path / "toy", spaces)
    arguments = ["--methods", "gp", "random", "--data", tmp_path / "toy", "--designs", "test0,test1", "--trials", "12"]
    for page, more, variants, n_tables in (
        ("methods", [], {"": "toy"}, 2),
        ("reversed-permuted", ["--reverse", "--permute"], {h: f"toy-{h}" for h in ("reversed", "permuted")}, 6),
    ):
        out = tmp_path / page
        options = [*arguments, *more, "--at", "5,10,12", "--out", out]
        monkeypatch.setattr("sys.argv", ["compare_methods.py", *map(str, options)])
        part("compare_methods").main()
        text = (out / f"{page}.md").read_text()
        assert text in capsys.readouterr().out
        assert text.count("| `random` |") == n_tables
        for folder, data in variants.items():
            results = read_results(out / folder / "results" / "gp.json")
            assert {run[0] for run in results.runs()} == {f"{data}/p", f"{data}/q"}
            assert (out / folder / "report" / "report.html").exists()
        written = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.json")}
        part("compare_methods").main()
        assert (out / f"{page}.md").read_text() == text
        assert {path: path.stat().st_mtime_ns for path in written} == written


def comparison_of(regret):
    """Of method -> regret at each trial of each task."""
    traces = {m: {f"task{i}": {"test0": 1.0 - np.array(r)} for i, r in enumerate(tasks)} for m, tasks in regret.items()}
    return compare({method: Results({"bundled/svm": by_task}) for method, by_task in traces.items()})


def test_a_method_whose_package_is_missing_is_left_out(part, monkeypatch, capsys):
    from dre_jax.errors import MissingExtraError
    from dre_jax.methods.baselines import tpe

    def missing(*names):
        raise MissingExtraError("optuna", "optuna")

    monkeypatch.setattr(tpe, "import_extra", missing)
    assert part("compare_methods").available(["random", "tpe", "random"]) == ["random"]
    assert part("compare_methods").available(["recommended"]) == [real_name("recommended")]
    assert "tpe is left out: this needs the package 'optuna'" in capsys.readouterr().err


def random_runs(seed=0, trials=12):
    """Method -> results on two search spaces of unequal size, two designs; late in a run there are ties."""
    rng = np.random.default_rng(seed)

    def trace():
        return np.maximum.accumulate(np.minimum(rng.integers(0, 9, trials + 1) / 8, 1.0))

    sizes = {"big": 5, "small": 3}
    return {
        name: Results({s: {f"t{i}": {"a": trace(), "b": trace()} for i in range(n)} for s, n in sizes.items()})
        for name in ("gp", "one", "two")
    }


def test_the_guard_is_a_mean_over_its_error(misled):
    """Over tasks, whose regret is the mean over their two designs."""
    comparison = compare(random_runs())
    for part in (comparison, comparison.of_space("small")):
        regret = part.regret.reshape(3, -1, 2, 13).mean(axis=2)[:, :, [5, 10, 12]]
        difference = regret - regret[[part.methods.index("gp")]]
        error = stats.sem(difference, axis=1)
        expected = np.divide(difference.mean(axis=1), error, out=np.zeros_like(error), where=error > 0)
        np.testing.assert_allclose(misled.behind(part)[:, [5, 10, 12]], expected)


def test_a_guard_is_kept_within_one_standard_error_and_a_single_task_has_none(misled):
    def verdicts(**regret):
        rows = misled.guard_table(comparison_of(regret), (5, 10)).splitlines()[2:]
        return {cells[1].strip(" `"): cells[-2].strip() for cells in (row.split("|") for row in rows)}

    tasks = [0.1, 0.2, 0.3]
    flat = {name: [[r + more * (i == 0)] * 11 for i, r in enumerate(tasks)] for name, more in (("gp", 0), ("odd", 0.3))}
    worse = [[r + 0.1 + 0.01 * i] * 11 for i, r in enumerate(tasks)]
    late = [[r] * 10 + [r + 0.1 + 0.01 * i] for i, r in enumerate(tasks)]
    result = verdicts(**flat, same=flat["gp"], worse=worse, late=late)
    assert result == {"gp": "", "same": "kept", "odd": "kept", "worse": "**broken**", "late": "**broken**"}
    for n in range(3, 30):  # a single task that differs is one standard error
        gp = [[0.1] * 11] * n
        assert verdicts(gp=gp, odd=[*gp[1:], [0.23] * 11])["odd"] == "kept"
    assert verdicts(gp=flat["gp"][:1], worse=worse[:1]) == {"gp": "", "worse": "–"}


def test_misleading_tasks_have_runs_and_checkpoints_of_their_own(part, make_space, tmp_path, monkeypatch):
    script = part("compare_methods")
    write_dataset(tmp_path / "toy", [make_space("p")])
    monkeypatch.setattr("sys.argv", ["compare_methods.py", "--reverse", "--out", str(tmp_path / "out")])
    args = script.arguments()
    toy = str(tmp_path / "toy")
    folders = [toy, *(script.write_variant(toy, tmp_path, how) for how in ("reversed", "permuted"))]
    jobs = [job for folder in folders for job in script.jobs_of(args, ["gp", "dre"], [folder])]
    assert len({job.path for job in jobs}) == len(jobs) == 2 * 3
    assert len({job.checkpoints() for job in jobs} - {None}) == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--trials", "100"], (5, 10, 25, 50, 100)),
        ([], (5, 10, 25, 50)),
        (["--trials", "3"], (3,)),
        (["--trials", "100", "--at", "5,100,25"], (5, 25, 100)),
        (["--trials", "50", "--at", "5,100"], "--at must be from 1 to --trials 50, but got 5,100"),
        (["--at", "0"], "--at must be from 1 to --trials 50, but got 0"),
        (["--trials", "0"], "--trials must be at least 1, but got 0"),
        (["--reverse", "--split", "validation"], "are for test tasks, but got --split validation"),
        (["--reverse", "--methods", "random"], "--permute compare with gp, but --methods are random"),
    ],
)
def test_trials_of_the_tables(part, monkeypatch, tmp_path, given, expected):
    script = part("compare_methods")
    monkeypatch.setattr("sys.argv", ["compare_methods.py", "--out", str(tmp_path), *given])
    if isinstance(expected, tuple):
        assert script.table_trials(script.arguments()) == expected
    else:
        with pytest.raises(ConfigError, match=expected):
            script.main()
