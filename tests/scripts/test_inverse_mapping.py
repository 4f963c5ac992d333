"""The sorting study's script against plain loops, and its files."""

import itertools
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest


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
    found = np.asarray(sorting.is_in_order(jnp.asarray(numbers), jnp.asarray(scores)))
    expected = [is_sorted_by(x.tolist(), s.tolist()) for x, s in zip(numbers, scores, strict=True)]
    assert found.tolist() == expected
    ties = np.asarray(sorting.has_tie(jnp.asarray(numbers), jnp.asarray(scores)))
    assert ties.tolist() == [any(a == b for a, b in itertools.pairwise(s)) for s in scores.tolist()]
    assert sum(expected[60:]) > 0
    assert sum(expected) < 120


def test_equal_numbers_may_score_alike_and_different_ones_may_not(sorting):
    numbers = jnp.array([[1.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    scores = jnp.array([[5.0, 4.0, 4.0], [5.0, 4.0, 4.0]])
    assert sorting.is_in_order(numbers, scores).tolist() == [True, False]


def test_numbers_are_uniform_in_their_range(sorting):
    for low, high in sorting.RANGES.values():
        numbers = np.asarray(sorting.draw_numbers(jax.random.key(0), (low, high), (2000, 5)))
        assert (np.diff(numbers, axis=-1) >= 0).all()
        assert numbers.min() >= low
        assert numbers.max() <= high
        quartiles = np.quantile(numbers, (0.25, 0.5, 0.75))
        np.testing.assert_allclose(quartiles, low + (high - low) * np.array([0.25, 0.5, 0.75]), atol=2.0)


def test_the_scores_stay_in_the_range_of_the_thesis(sorting):
    sizes = sorting.Sizes(hidden=(8,))
    model = sorting._model(sorting.ARMS["ListMLE"], sizes)
    params, _ = sorting._start(model, jax.random.key(0))
    numbers = jnp.linspace(-1e4, 1e4, 50)
    layers = {name: np.asarray(a[0], np.float64) for name, a in params.scorers.items()}
    hidden = np.maximum(np.asarray(numbers)[:, None] @ layers["hidden_0_kernel"] + layers["hidden_0_bias"], 0.0)
    free = (hidden @ layers["out_kernel"] + layers["out_bias"])[:, 0]
    np.testing.assert_allclose(sorting.score(model, params, numbers), 2.0 * np.tanh(0.01 * free), rtol=1e-4, atol=1e-5)


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
def test_the_script_writes_what_it_prints(part, tmp_path, monkeypatch, capsys):
    script = part("inverse_mapping")
    monkeypatch.setattr(sys, "argv", ["inverse_mapping.py", "--quick", "--out", str(tmp_path)])
    script.main()
    printed = capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {f"inverse_mapping.{s}" for s in ("md", "json", "png", "svg")}
    assert (tmp_path / "inverse_mapping.md").read_text() in printed
    measured = json.loads((tmp_path / "inverse_mapping.json").read_text())["measured"]
    assert len(measured) == 4 * 1 * 2
    row = next(line for line in printed.splitlines() if line.startswith("| RankNet | 3 | 10 |"))
    cell = next(m for m in measured if (m["loss"], m["list_size"], m["epochs"]) == ("RankNet", 3, 10))
    values = np.array(cell["accuracy"]["hybrid"])
    assert f"{values.mean():.2f} ± {values.std(ddof=1):.2f}" in row
