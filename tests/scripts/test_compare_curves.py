"""The comparison of pruners: what a study counts, on made-up curves."""

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="optuna is not installed; it comes with the extra `optuna`")


@pytest.fixture
def curves(part):
    return part("compare_curves")


def table(curves):
    unit = np.random.default_rng(0).random((20, 2))
    return unit, unit[:, :1] + 1.0 / np.arange(1, curves.N_STEPS + 1)  # the first hyperparameter is the loss


def test_study_without_a_pruner_uses_whole_curves(curves):
    unit, losses = table(curves)
    outcome = curves.run_study((unit, losses), optuna.pruners.NopPruner(), "random", 0, 3 * curves.N_STEPS)
    points = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    rows = []
    for _ in range(3):
        trial = points.ask()
        rows.append(np.argmin(((unit - [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(2)]) ** 2).sum(1)))
    regrets = (losses[:, -1] - losses[:, -1].min()) / (np.median(losses[:, -1]) - losses[:, -1].min())
    assert np.isnan(outcome.best[: curves.N_STEPS - 1]).all()
    np.testing.assert_allclose(outcome.best[curves.N_STEPS - 1 :: curves.N_STEPS], np.minimum.accumulate(regrets[rows]))
    assert not outcome.lost
    assert outcome.trials == 3


def test_lost_optimum_is_a_pruned_trial_that_would_have_become_the_best(curves):
    class First(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return trial.number > 0

    outcome = curves.run_study(table(curves), First(), "random", 0, 2 * curves.N_STEPS)
    assert outcome.lost
    assert outcome.trials == curves.N_STEPS + 1


def test_past_curves_are_of_other_data(curves):
    tables = {(model, name): table(curves) for model in curves.MODELS for name in curves.DATASETS}
    past = curves.past_curves(tables, ("mlp", "even digits"), "negated")
    assert sorted(past.tasks) == [f"mlp {n}" for n in ("cancer", "diabetes", "hastie", "iris", "moons", "wine")]
    assert past.tasks["mlp iris"][0][1] == tables["mlp", "iris"][1][0, 0]
