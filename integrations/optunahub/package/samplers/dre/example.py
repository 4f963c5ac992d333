"""Five past studies of other data sets, then a new one that begins where they were good."""

from __future__ import annotations

import optuna
import optunahub

from dre_jax.tuning import Surrogate, from_studies
from dre_jax.tuning.optuna import from_optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)
DISTRIBUTIONS = {
    "learning_rate": optuna.distributions.FloatDistribution(1e-4, 1.0, log=True),
    "momentum": optuna.distributions.FloatDistribution(0.0, 0.99),
}


def loss(trial: optuna.Trial, best: float) -> float:
    """Of training on a data set whose best learning rate is 10**best."""
    rate = trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 0.99)
    return abs(rate / 10**best - 1.0) ** 0.5 + (momentum - 0.9) ** 2


def past_study(best: float) -> optuna.Study:
    """Twenty trials of a data set of the past."""
    study = optuna.create_study(study_name=f"best at 1e{best}", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: loss(trial, best), n_trials=20)
    return study


if __name__ == "__main__":
    space = from_optuna(DISTRIBUTIONS)
    past = from_studies([past_study(best) for best in (-2.4, -2.2, -2.0, -1.8, -1.6)], space)
    surrogate = Surrogate.fit(past, method="gcp")

    module = optunahub.load_module(package="samplers/dre")
    study = optuna.create_study(sampler=module.DRESampler(surrogate=surrogate, seed=0))
    study.optimize(lambda trial: loss(trial, -2.1), n_trials=10)
    print(study.best_params, study.best_value)
