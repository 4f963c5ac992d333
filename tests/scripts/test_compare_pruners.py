"""The comparison of pruners: what a study counts, and the rule on curves of a deep network."""

import json

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="optuna is not installed; it comes with the extra `optuna`")


@pytest.fixture(scope="module")
def pruners(part):
    return part("compare_pruners")


class After(optuna.pruners.BasePruner):
    """Prunes all trials but the first at their first step."""

    def prune(self, study, trial):
        return trial.number > 0


def test_outcome_of_a_study(pruners):
    curves = [{1: 0.0, 2: 0.5}, {1: 0.1, 2: 0.7}, {1: 0.2, 2: 0.4}]
    assert pruners.run_study(curves, optuna.pruners.NopPruner()) == (100.0, False, 0.0)
    assert pruners.run_study(curves, After()) == (pytest.approx(400 / 6), True, pytest.approx(0.2))


def test_steps_are_tenths_of_each_training(pruners, tmp_path):
    trials = [{"curve": [[1, 0.1], [20, 2.0]], "diverged": False}, {"curve": [[1, 0.0], [2, 0.0]], "diverged": True}]
    (tmp_path / "curves.json").write_text(json.dumps(trials))
    (curve,) = pruners.read_curves(tmp_path / "curves.json")
    np.testing.assert_allclose(list(curve.values()), 0.2 * np.arange(1, 11))
    assert pruners.read_curves(tmp_path / "curves.json", raw_steps=True) == [{1.0: 0.1, 20.0: 2.0}]


def test_table_of_generated_curves(pruners, capsys):
    pruners.main(["--studies", "1", "--trials", "20"])
    assert [line.split(" | ")[0] for line in capsys.readouterr().out.splitlines()[2:]] == [
        "| DREPruner, with past",
        "| DREPruner",
        "| Median",
        "| Hyperband",
        "| SuccessiveHalving",
    ]


@pytest.mark.parametrize("name", ["alexnet-imagenet", pytest.param("deberta-base-mnli", marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_past_curves_of_a_network_save_most_steps_and_keep_the_best(pruners, shared_data, name):
    curves = pruners.read_curves(shared_data / "deep" / f"curves-{name}.json.gz")
    steps, lost, _ = zip(*pruners.compare(curves, None, 5, 60)["DREPruner, with past"], strict=True)
    assert np.mean(steps) < 45
    assert sum(lost) <= 1
