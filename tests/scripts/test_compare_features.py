"""Functions whose optimum moves with a feature, and their comparison."""

import json

import numpy as np
import pytest

from dre_jax.tuning import Surrogate
from tests.known_methods import BestLine

T = 11


@pytest.mark.parametrize("moves", [False, True])
def test_the_optimum_of_a_function_is_where_its_first_feature_says(part, moves):
    function = part("compare_features").make_function(np.random.default_rng(0), np.array([0.9, 0.1]), moves)
    line = np.linspace(0.0, 1.0, 1001)
    values = np.array([function.value(np.array([x, 0.5, 0.5])) for x in line])
    optimum = line[values.argmax()]
    assert abs(optimum - (0.74 if moves else 0.5)) < (0.1 if moves else 0.3)
    assert values.max() < function.best < values.max() + 1.0
    drawn = [function.value(x) for x in np.random.default_rng(1).random((2000, 3))]
    assert (np.array(drawn) > function.median).mean() == pytest.approx(0.5, abs=0.05)


def test_pasts_are_averaged_and_finished_ones_are_read(part, tmp_path, capsys):
    """Two pasts of two tasks: regrets with features of 0.1 and 0.3, and 0.4 without; a third line is cut short."""
    path = tmp_path / "searches.jsonl"
    rows = [["3x1 moves", seed, [[[low] * T, [0.4] * T]] * 2] for seed, low in enumerate((0.1, 0.3))]
    path.write_text("\n".join(map(json.dumps, rows)) + '\n["3x1 moves", 2, [[[0.1, 0.')
    assert part("compare_features").main(["--out", str(path), "--cases", "3x1 moves", "--pasts", "2"]) == 0
    text = capsys.readouterr().out
    assert "| 3x1 moves | with |" + " 0.200 ± 0.100 |" * 5 in text
    assert "| 3x1 moves | without |" + " 0.400 ± 0.000 |" * 5 in text
    assert "| 3x1 moves | difference |" + " -0.200 ± 0.100 |" * 5 in text


@pytest.mark.slow
def test_searches_with_features_know_those_of_the_new_task(part, registries, monkeypatch):
    """A method that suggests the line through the best of the past."""
    script, fit = part("compare_features"), Surrogate.fit
    monkeypatch.setattr(script.Surrogate, "fit", lambda past, **options: fit(past, method=BestLine(), **options))
    monkeypatch.setattr(script, "_N_TRIALS", 1)
    regrets = script.compare(script.Case(12, 1, True), 0, 3)
    assert regrets.shape == (3, 2, 1)
    assert (regrets[:, 0] < 0.5).all()
