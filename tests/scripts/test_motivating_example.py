"""The motivating example's script against plain loops, and its files."""

import re
import sys

import jax
import numpy as np
import pytest
from scipy.stats import norm, rankdata

from dre_jax.data.tasks import unit_scale
from dre_jax.search import run_in_python


@pytest.fixture(scope="module")
def run(part):
    """The run that the script draws with quick settings: a few trials of an untrained ensemble, beta 0, seed 0."""
    sinusoid, inside, transfer = (part(f"papers.{name}") for name in ("sinusoid", "inside", "transfer"))
    method = transfer.untrained(part("motivating_example").QUICK)
    task = sinusoid.make_task("beta 0", 0.0)
    design = sinusoid.initial_rows(0, (0.0,))
    steps = inside.walk(method, None, task, design, 3, jax.random.key(0))
    return method, task, design, steps, inside


def test_the_tasks_are_what_calculus_says(part):
    sinusoid = part("papers.sinusoid")
    assert sinusoid.X[sinusoid.sinusoid(0.0).argmax()] == pytest.approx(0.0, abs=1e-9)
    for peak in (4 * np.pi - 16, 8 * np.pi - 16):  # (x + pi) / 2 + 8 = pi / 2 + 2 pi k
        assert sinusoid.sinusoid(8.0)[abs(sinusoid.X - peak) < 0.05].min() > 0.999

    def distance(shift):
        """To the nearest training task on the circle of shifts."""
        return abs(np.angle(np.exp(1j * (shift - np.array(sinusoid.TRAIN_SHIFTS))))).min()

    assert distance(sinusoid.GAP_SHIFT) >= max(map(distance, np.linspace(0, 2 * np.pi, 1000))) - 0.01
    assert distance(sinusoid.TEST_SHIFT) < 0.5
    space = sinusoid.make_space(5)
    for name, task in space.test.items():
        for rows in space.designs[name].values():
            assert len(set(rows.tolist())) == 3
            assert unit_scale(task.y)[rows].max() < 0.99, "a design holds a row near the optimum"


@pytest.mark.thorough
def test_what_is_drawn_is_what_the_library_picks(run):
    method, task, design, steps, inside = run
    picks = run_in_python(method, None, inside.search_task(task), design, jax.random.key(0), 3)
    assert [step.chosen for step in steps] == picks.tolist()
    assert steps[-1].rows.tolist() == [*design.tolist(), *picks[:-1].tolist()]


def test_ranks_and_improvement_follow_from_the_scores(run):
    _, task, _, steps, _ = run
    for step in steps:
        best = step.rows[np.argmax(task.y[step.rows])]
        pending = sorted(set(range(task.n_rows)) - set(step.rows.tolist()))
        ranked = sorted([*pending, best])
        ranks = np.array([rankdata(-member[ranked]) for member in step.scores])
        mean, deviation = ranks.mean(axis=0), np.maximum(ranks.std(axis=0), 1e-9)
        np.testing.assert_allclose(step.ranks[:, ranked], ranks)
        np.testing.assert_allclose(step.mean[ranked], mean, rtol=1e-5)
        np.testing.assert_allclose(step.deviation[ranked], deviation, rtol=1e-3, atol=1e-3)
        z = (mean[ranked.index(best)] - mean) / deviation
        improvement = deviation * (norm.pdf(z) + z * norm.cdf(z))
        found = np.exp(step.log_ei[pending])
        np.testing.assert_allclose(found, improvement[np.isin(ranked, pending)], rtol=5e-2, atol=5e-2)
        assert found.max() == pytest.approx(np.exp(step.log_ei[step.chosen]))


def test_numbers_of_the_tables(part):
    report, transfer, sinusoid = (part(f"papers.{name}") for name in ("sinusoid_report", "transfer", "sinusoid"))
    members = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
    assert report.share_between(members) == 0.0
    flat = np.array([1, 2, 3, 112, 104, 108.0])
    expected = ((flat[3:].mean() - flat[:3].mean()) / 2) ** 2 / flat.var()
    assert report.share_between(members * [[1.0], [4.0]] + [[0.0], [100.0]]) == pytest.approx(expected)
    found = transfer.trials_to_reach(np.array([[0.1, 0.5, 0.995], [0.99, 1.0, 1.0], [0.1, 0.2, 0.9899]]))
    np.testing.assert_array_equal(found, [2.0, 0.0, np.nan])
    # Chance is the mean over random orders.
    task, rng = sinusoid.make_task("beta 8", 8.0), np.random.default_rng(0)
    good = np.arange(task.n_rows - 3) < (unit_scale(task.y) >= 0.99).sum()
    trials = [rng.permutation(good).argmax() + 1 for _ in range(20_000)]
    assert report.expected_by_chance(task) == pytest.approx(np.mean(trials), abs=0.3)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_script_writes_what_it_prints(part, run, tmp_path, monkeypatch, capsys):
    script = part("motivating_example")
    monkeypatch.setattr(sys, "argv", ["motivating_example.py", "--quick", "--out", str(tmp_path)])
    script.main()
    printed = capsys.readouterr().out
    figures = {f"{name}.{kind}" for name in ("steps", "outputs", "transfer") for kind in ("png", "svg")}
    assert {path.name for path in tmp_path.iterdir()} == figures | {"motivating_example.md"}
    assert (tmp_path / "motivating_example.md").read_text() in printed
    x = part("papers.sinusoid").X
    steps = [line.split(" | ") for line in re.findall(r"^\| \d+ \|.*", printed, re.MULTILINE)]
    assert [cells[4] for cells in steps] == [f"{x[step.chosen]:.1f}" for step in run[3]]
    rows = re.findall(r"^\| beta [^|]*\| ([^|]*) \|", printed, re.MULTILINE)
    methods = ["untrained", "random search", "meta-trained", "meta-trained, fine-tuned", "random search, expected"]
    assert rows == methods * 2
