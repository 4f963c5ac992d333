"""The sorting study's script against plain loops, and its files."""

import sys

import jax
import numpy as np
import pytest
from scipy import stats

from dre_jax.methods.dre.ensemble import init
from dre_jax.runtime import devices


@pytest.fixture(scope="module")
def sorting(part):
    return part("papers.sorting")


def is_sorted_by(numbers, scores):
    """Whether ordering by score, highest first, gives the numbers from small to large, with no score tied."""
    in_order = [x for _, x in sorted(zip(scores, numbers, strict=True), key=lambda pair: -pair[0])]
    return in_order == sorted(numbers) and len(set(scores)) == len(scores)


def test_lists_are_in_order_as_a_loop_finds_them(sorting):
    rng = np.random.default_rng(0)
    numbers = np.sort(rng.uniform(1, 100, (200, 3)).astype(np.float32), axis=-1)
    scores = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], (200, 3)).astype(np.float32)
    scores[:60] = -numbers[:60]
    expected = [is_sorted_by(x.tolist(), s.tolist()) for x, s in zip(numbers, scores, strict=True)]
    assert sorting.is_in_order(numbers, scores).tolist() == expected
    assert 60 < sum(expected) < 120
    # Equal numbers may score alike, different ones may not.
    numbers = np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    assert sorting.is_in_order(numbers, np.array([[5.0, 4.0, 4.0]] * 2)).tolist() == [True, False]


def test_numbers_are_uniform_in_their_range_and_scores_limited(sorting):
    for low, high in sorting.RANGES.values():
        numbers = sorting.draw_numbers(np.random.default_rng(0), (low, high), (2000, 5))
        assert (np.diff(numbers, axis=-1) >= 0).all()
        assert stats.kstest(numbers.ravel(), stats.uniform(low, high - low).cdf).pvalue > 1e-3
    model = sorting.model_of(sorting.ARMS["ListMLE"], sorting.Sizes(hidden=(8,)))
    far = np.abs(sorting.score(model, init(model, 1, jax.random.key(0)), np.linspace(-1e4, 1e4, 50, dtype=np.float32)))
    assert far.shape == (5, 50)
    assert 1.0 < far.max() <= 2.0


@pytest.mark.slow
@pytest.mark.thorough
def test_training_turns_round_scorers_that_rise(sorting):
    sizes = sorting.Sizes(epochs=(1, 100), seeds=4, batch=20, test_lists=100)
    before, after = sorting.run("RankNet", 5, sizes)
    assert (before.epochs, after.epochs) == (1, 100)
    assert before.accuracy["in range"].min() < 0.1
    assert after.accuracy["in range"].min() > 0.9
    assert len(np.unique(after.pairs["hybrid"])) > 1  # the seeds differ


@pytest.mark.slow
@pytest.mark.thorough
def test_the_script_writes_what_it_prints(part, sorting, tmp_path, monkeypatch, capsys):
    script = part("inverse_mapping")
    monkeypatch.setattr(devices, "_limit", None)  # which the script sets
    monkeypatch.setattr(sys, "argv", ["inverse_mapping.py", "--quick", "--out", str(tmp_path)])
    script.main()
    printed = capsys.readouterr().out
    assert (tmp_path / "inverse_mapping.md").read_text() in printed
    rows = [line for line in printed.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 4
    (found,) = sorting.run("RankNet", 3, script.QUICK)
    cells = [f"{values.mean():.2f} ± {values.std(ddof=1):.2f}" for values in found.accuracy.values()]
    assert rows[-1].startswith(f"| RankNet | 3 | 10 | {' | '.join(cells)} | ")
