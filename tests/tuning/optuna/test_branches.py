"""Conditions that are learned from the trials of define-by-run objectives."""

import optuna
import pytest
from optuna.samplers import RandomSampler, TPESampler
from optuna.trial import TrialState

from dre_jax.tuning import Categorical, Float, Int, Interval, Space
from dre_jax.tuning.optuna import DRESampler
from dre_jax.tuning.optuna.branches import learn_translation
from dre_jax.tuning.optuna.trials import latest_distributions

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def nested(trial):
    if trial.suggest_categorical("model", ["svm", "tree", None]) == "svm":
        if trial.suggest_categorical("kernel", [("rbf", 1), ("poly", 2)])[0] == "poly":
            trial.suggest_int("degree", 2, 5)
        trial.suggest_float("C", 1e-3, 1e3, log=True)


def layers(trial):
    for i in range(trial.suggest_int("n", 1, 3)):
        trial.suggest_float(f"width{i}", 0.0, 1.0)


def both(trial):
    a, b = trial.suggest_categorical("a", [1, "1"]), trial.suggest_categorical("b", ["x", "y", "z"])
    if a == "1" and b in ("x", "z"):
        trial.suggest_float("p", 0.0, 1.0)


def either(trial):
    a, b = trial.suggest_categorical("a", ["x", "y", "z"]), trial.suggest_categorical("b", [True, False])
    if a == "y" or b:
        trial.suggest_float("p", 0.0, 1.0)


def choice_and_number(trial):
    is_deep, n = trial.suggest_categorical("deep", [True, False]), trial.suggest_int("n", 1, 4)
    if is_deep and n >= 3:
        trial.suggest_float("p", 0.0, 1.0)


def trials_of(objective, n, seed=0):
    study = optuna.create_study(sampler=RandomSampler(seed=seed))
    study.optimize(lambda trial: objective(trial) or 0.0, n_trials=n)
    return study.trials


def learn(trials):
    return learn_translation(trials, latest_distributions(trials))


@pytest.mark.filterwarnings("ignore:Choices for a categorical")
@pytest.mark.parametrize("objective", [nested, layers, both, either, choice_and_number])
def test_what_is_active_is_what_the_objective_suggests(objective):
    """In trials that were not learned from, and in configurations that the space makes."""
    translation = learn(trials_of(objective, 60))
    for trial in trials_of(objective, 60, seed=1):
        params = translation.read_params(trial.params)
        assert params.keys() == trial.params.keys()
        assert translation.to_optuna_values(params) == trial.params
    names = list(translation.space)
    assert names == list(translation.distributions)
    assert any(translation.space[name].when for name in names)


def test_a_threshold_is_a_round_number_between_the_trials():
    def by_dropout(trial):
        if trial.suggest_float("dropout", 0.0, 1.0) > 0.503:
            trial.suggest_float("scale", 0.0, 1.0)

    trials = trials_of(by_dropout, 40)
    ((parent, interval),) = learn(trials).space["scale"].alternatives[0]
    below = max(trial.params["dropout"] for trial in trials if "scale" not in trial.params)
    above = min(trial.params["dropout"] for trial in trials if "scale" in trial.params)
    assert parent == "dropout"
    assert interval == Interval(above=interval.above)
    assert below < interval.above < above
    assert len(repr(interval.above)) <= 4  # 0.5 or two digits


def test_what_nothing_explains_is_left_out():
    """With a hyperparameter that depends on it."""

    def by_number(trial):
        trial.suggest_float("x", 0.0, 1.0)
        if trial.number % 2 and trial.suggest_categorical("odd", ["a", "b"]) == "a":
            trial.suggest_float("y", 0.0, 1.0)

    assert list(learn(trials_of(by_number, 30)).space) == ["x"]
    assert learn(trials_of(lambda trial: None, 3)) is None
    assert learn([]) is None


def test_few_trials_do_not_make_a_threshold():
    """Of two trials, any number separates one from the other."""

    def first_only(trial):
        trial.suggest_float("x", 0.0, 1.0)
        if trial.number == 0:
            trial.suggest_float("y", 0.0, 1.0)

    assert all(list(learn(trials_of(first_only, n)).space) == ["x"] for n in range(2, 30))


def test_a_branch_of_pruned_trials_and_an_early_end():
    """A pruned trial says what the objective suggests, and not what it would have left out."""
    study = optuna.create_study(sampler=RandomSampler(seed=0))

    def pruned(trial):
        is_deep = trial.suggest_categorical("deep", [True, False])
        if trial.number == 3:
            raise optuna.TrialPruned
        if is_deep:
            trial.suggest_float("p", 0.0, 1.0)
            raise optuna.TrialPruned
        return trial.suggest_float("x", 0.0, 1.0)

    study.optimize(pruned, n_trials=20)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE, TrialState.PRUNED}
    space = learn(study.trials).space
    assert list(space) == ["deep", "x", "p"]
    assert space["x"].when is None or not space["x"].when
    assert dict(space["p"].alternatives[0]) == {"deep": (True,)}


def branches(trial):
    """The better branch has the worse values at random: its optimum is 0, that of the other .5."""
    if trial.suggest_categorical("branch", ["a", "b"]) == "a":
        return 0.5 + (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2
    return 4.0 * ((trial.suggest_float("y", 0.0, 1.0) - 0.7) ** 2 + (trial.suggest_float("z", 0.0, 1.0) - 0.2) ** 2)


@pytest.mark.usefixtures("even_points")
def test_the_search_space_is_conditional(engine_calls):
    """The engine has what the trials have, without stand-ins for what a branch lacks."""
    study = optuna.create_study(sampler=DRESampler(seed=0, warn_independent_sampling=False))
    study.optimize(branches, n_trials=10)
    assert [trial.params for trial in engine_calls[-1]["observed"]] == [trial.params for trial in study.trials[:-1]]
    assert set(study.sampler.infer_relative_search_space(study, study.trials[0])) == {"branch", "x", "y", "z"}


@pytest.mark.thorough
def test_the_search_finds_the_better_branch():
    """As Optuna's TPE of groups does at most, over three seeds."""

    def regrets(sampler_of):
        studies = [optuna.create_study(sampler=sampler_of(seed)) for seed in range(3)]
        for study in studies:
            study.optimize(branches, n_trials=40)
        return [study.best_value for study in studies]

    regrets_of_search = regrets(lambda seed: DRESampler(seed=seed))
    assert max(regrets_of_search) < 0.01
    assert sum(regrets_of_search) < sum(regrets(lambda seed: TPESampler(seed=seed, multivariate=True, group=True)))


SPACE = Space(
    {
        "x": Float(0.0, 1.0),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "shift": Float(0.0, 1.0, when={"degree": Interval(above=3)}),
    }
)


def conditional(trial):
    value = trial.suggest_float("x", 0.0, 1.0)
    if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly" and trial.suggest_int("degree", 2, 5) > 3:
        value += trial.suggest_float("shift", 0.0, 1.0)
    return value


@pytest.mark.usefixtures("even_points")
@pytest.mark.parametrize("space", [SPACE, None])
def test_enqueued_values_are_active(space):
    """In a space that is known, and in one that was learned."""
    sampler = DRESampler(space, seed=0, warn_independent_sampling=False)
    study = optuna.create_study(sampler=sampler if space else RandomSampler(seed=0))
    study.optimize(conditional, n_trials=0 if space else 40)
    study.sampler = sampler
    parts = [{"degree": 5}, {"degree": 2}, {"shift": 0.25}, {"shift": 0.5, "x": 0.75}] * 2
    for part in parts:
        study.enqueue_trial(part)
    study.optimize(conditional, n_trials=len(parts))
    for trial, part in zip(study.trials[-len(parts) :], parts, strict=True):
        assert part.items() <= trial.params.items()
        assert trial.params["kernel"] == "poly"


@pytest.mark.usefixtures("even_points")
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_enqueued_values_do_not_change_those_of_another_sampler():
    study = optuna.create_study(sampler=DRESampler(SPACE, seed=0))
    study.sampler = optuna.samplers.PartialFixedSampler({"kernel": "rbf"}, study.sampler)
    study.optimize(conditional, n_trials=1)
    for part in ({"degree": 5}, {"kernel": "poly", "shift": 2.0}, {"kernel": "rbf", "degree": 5}):
        study.enqueue_trial(part)
    study.optimize(conditional, n_trials=3)
    assert [trial.params["kernel"] for trial in study.trials] == ["rbf", "rbf", "poly", "rbf"]
