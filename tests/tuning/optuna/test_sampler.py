"""`DRESampler` in studies: what it goes by, and that no two workers try the same."""

import pickle
from dataclasses import replace

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import PartialFixedSampler, RandomSampler
from optuna.trial import TrialState

from dre_jax.errors import ConfigError, DreError
from dre_jax.methods import find
from dre_jax.tuning import Allowed, Categorical, Count, Float, Formula, Int, Less, Space, Sum, Surrogate
from dre_jax.tuning.engine.engine import Engine, Suggestion
from dre_jax.tuning.optuna import DRESampler
from dre_jax.tuning.trials.objectives import objectives_of
from tests.error_messages import error_table

pytestmark = pytest.mark.usefixtures("even_points", "quiet_optuna")
SPACE = Space({"x": Float(0.0, 1.0), "kernel": Categorical(["rbf", "poly"])})
DISTRIBUTIONS = {"x": FloatDistribution(0.0, 1.0), "kernel": CategoricalDistribution(["rbf", "poly"])}
WITH_STARTS = Surrogate(SPACE, "none", None, None, ({"x": 0.1, "kernel": "poly"}, {"x": 0.7, "kernel": "rbf"}))


def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    return x if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "rbf" else 1.0 - x


def study_of(sampler, **options):
    return optuna.create_study(sampler=sampler, **options)


def configurations(study):
    return [tuple(sorted(trial.params.items())) for trial in study.trials]


@pytest.mark.parametrize("space", [SPACE, DISTRIBUTIONS])
def test_a_search_space_is_searched_from_the_first_trial_on(space):
    sampler = DRESampler(space, seed=0)
    study = study_of(sampler)
    study.optimize(objective, n_trials=4)
    expected = [Engine(SPACE, seed=0).propose([], number=0).params]
    for number in range(1, 4):
        expected.append(Engine(SPACE, seed=0).propose([], number=number, pending=expected).params)
    assert [trial.params for trial in study.trials] == expected


def test_a_surrogate_follows_the_bounds_of_the_objective(engine_calls):
    """Those of the first trial on: choices in another order, fewer numbers."""
    study = study_of(DRESampler(surrogate=WITH_STARTS, seed=0))
    study.enqueue_trial({"x": 0.375, "kernel": "poly"})

    def narrow(trial):
        x = trial.suggest_float("x", 0.25, 0.5, step=0.125)
        return x if trial.suggest_categorical("kernel", ["poly", "rbf"]) == "rbf" else 1.0 - x

    study.optimize(narrow, n_trials=5)
    assert len(set(configurations(study))) == 5
    assert {trial.params["x"] for trial in study.trials} <= {0.25, 0.375, 0.5}
    assert len(engine_calls[-1]["observed"]) == 4


def test_states_of_trials(engine_calls):
    study = study_of(DRESampler(SPACE, seed=0), direction="maximize")
    for number, state in enumerate([TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, None]):
        trial = study.ask(DISTRIBUTIONS)
        trial.report(0.5, 1)
        if state is not None:
            study.tell(trial, float(number) if state is TrialState.COMPLETE else None, state=state)
    study.add_trial(optuna.create_trial(params={"x": 5.0}, distributions={"x": FloatDistribution(0, 9)}, value=99.0))
    study.enqueue_trial({"x": 0.25, "kernel": "poly"})
    study.ask()  # which takes what is enqueued, and suggests nothing yet
    study.ask(DISTRIBUTIONS)
    complete, failed, pruned, running = (trial.params for trial in study.trials[:4])
    last = engine_calls[-1]
    assert [o.params for o in last["observed"]] == [complete, pruned]
    assert last["observed"][0].value == 0.0 > last["observed"][1].value
    assert last["running"] == [running, {"x": 0.25, "kernel": "poly"}]
    assert last["failed"] == [failed]
    assert last["number"] == 6


@pytest.mark.filterwarnings("ignore:.*constraints_func:FutureWarning")
def test_constraints_of_a_function_are_those_of_optunas_samplers(engine_calls):
    """And those that the objective sets."""
    function = lambda trial: (trial.params["x"] - 0.5, -1)  # noqa: E731
    peer = study_of(optuna.samplers.TPESampler(seed=0, constraints_func=function))
    study = study_of(DRESampler(SPACE, seed=0, constraints_func=function))
    for one in (peer, study):
        one.optimize(objective, n_trials=3)
        for trial in one.trials:
            assert trial.constraints == {"0": trial.params["x"] - 0.5, "1": -1}
    assert [o.constraints for o in engine_calls[-1]["observed"]] == [trial.constraints for trial in study.trials[:2]]


def test_unfinished_trials_are_pending(engine_calls):
    """Asked together, and each suggested before the other's values are in its record."""
    study = study_of(DRESampler(SPACE, seed=0))
    trials = [study.ask() for _ in range(6)]
    for trial in reversed(trials):
        trial.suggest_float("x", 0.0, 1.0)  # the kernel is still to come
    assert len(engine_calls[-1]["running"]) == 5
    for trial in trials:
        trial.suggest_categorical("kernel", ["rbf", "poly"])
    assert len(set(configurations(study))) == 6


def test_several_objectives_have_their_values_and_surrogates(monkeypatch):
    """A pruned trial has no values, so it failed; each objective is turned by its own direction."""
    surrogate = replace(WITH_STARTS, method=find("gp").make())
    study = study_of(DRESampler(surrogate=[surrogate, None], seed=0), directions=["maximize", "minimize"])
    calls = []
    monkeypatch.setattr(
        Engine,
        "propose",
        lambda self, trials, **_: calls.append((self.objectives, trials)) or Suggestion({"x": 0.3, "kernel": "rbf"}),
    )
    first, pruned = study.ask(DISTRIBUTIONS), study.ask(DISTRIBUTIONS)
    study.tell(first, (1.0, 2.0))
    study.tell(pruned, state=TrialState.PRUNED)
    study.ask(DISTRIBUTIONS)
    objectives, trials = calls[-1]
    assert objectives == objectives_of(directions={"0": "maximize", "1": "minimize"})
    assert [trial.values for trial in trials] == [{"0": 1.0, "1": 2.0}, {}]
    assert (trials[1].state, trials[1].params) == ("failed", pruned.params)
    assert study.sampler._engine.surrogates == {"0": surrogate, "1": None}
    with pytest.raises(ConfigError, match="a study of 3 objectives needs as many surrogates"):
        study_of(study.sampler, directions=["minimize"] * 3).ask(DISTRIBUTIONS)


def test_concurrent_workers_suggest_different_trials(monkeypatch):
    """Another worker suggests between a worker's look at the study and its own suggestion."""
    study, others, propose = study_of(DRESampler(surrogate=WITH_STARTS, seed=0)), [], Engine.propose

    def late(self, observed, **options):
        if len(others) < 3:
            others.append(study.ask())
            others[-1].suggest_float("x", 0.0, 1.0)
        return propose(self, observed, **options)

    monkeypatch.setattr(Engine, "propose", late)
    study.ask(DISTRIBUTIONS)
    for other in others:
        other.suggest_categorical("kernel", ["rbf", "poly"])
    assert len(set(configurations(study))) == 4


def test_a_pickled_sampler_goes_on():
    one, two = study_of(DRESampler(WITH_STARTS, seed=3)), study_of(DRESampler(surrogate=WITH_STARTS, seed=3))
    for study in (one, two):
        study.optimize(objective, n_trials=3)
    two.sampler = pickle.loads(pickle.dumps(two.sampler))
    for study in (one, two):
        study.sampler.reseed_rng()
        study.optimize(objective, n_trials=2)
    assert configurations(one) == configurations(two)


def test_values_of_another_sampler_are_fixed(engine_calls):
    study = study_of(DRESampler(SPACE, seed=0))
    study.optimize(objective, n_trials=1)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        study.sampler = PartialFixedSampler({"kernel": "poly"}, study.sampler)
    study.optimize(objective, n_trials=2)
    for _ in range(3):  # that wait, and say nothing yet
        study.enqueue_trial({})
    study.optimize(objective, n_trials=2)
    assert {trial.params.get("kernel", "poly") for trial in study.trials[1:]} == {"poly"}
    assert [call["fixed"] for call in engine_calls[2:]] == [{"kernel": "poly"}] * 3
    assert len({c for c in configurations(study) if c}) == 5


def test_enqueued_values_are_fixed(engine_calls):
    study = study_of(DRESampler(SPACE, seed=0))
    study.enqueue_trial({"kernel": "poly"})
    study.enqueue_trial({"kernel": "sigmoid"})
    study.optimize(objective, n_trials=1)
    assert engine_calls[-1]["fixed"] == {"kernel": "poly"}
    assert study.trials[0].params["kernel"] == "poly"
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    assert engine_calls[-1]["fixed"] == {}


def test_hyperband_shows_trials_of_one_bracket(engine_calls):
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = study_of(DRESampler(SPACE, seed=0), pruner=pruner)

    def stepwise(trial):
        value = objective(trial)
        for step in range(9):
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.optimize(stepwise, n_trials=12)
    states = {trial.state for trial in study.trials}
    assert states == {TrialState.COMPLETE, TrialState.PRUNED}
    assert max(len(call["observed"]) for call in engine_calls) < 11


def test_conditions_of_the_space_are_kept(engine_calls):
    space = Space(dict(SPACE) | {"degree": Int(2, 5, when={"kernel": "poly"})})
    study = study_of(DRESampler(space, seed=0))

    def everything(trial):
        trial.suggest_int("degree", 2, 5)
        return objective(trial)

    study.optimize(everything, n_trials=6)
    assert len(engine_calls[-1]["observed"]) == 5
    assert {("degree" in o.params) for o in engine_calls[-1]["observed"] if o.params["kernel"] == "rbf"} == {False}


@pytest.mark.parametrize(
    "rule",
    [
        Less("x", "y"),
        Sum(["x", "y"], equals=1),
        Count(["x", "y"], equals=1),
        Formula("x * y <= 0.1"),
        Allowed([{"x": 0.1 * i, "y": 0.3} for i in range(6)]),
    ],
)
def test_rules_of_the_space_are_obeyed(rule):
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, rules=[rule])
    study = study_of(DRESampler(space, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) - trial.suggest_float("y", 0.0, 1.0), n_trials=6)
    assert all(space.allows(trial.params) for trial in study.trials)
    assert len(set(configurations(study))) == 6


def test_values_of_one_choice_and_of_any_type():
    study = study_of(DRESampler(seed=0))

    def many(trial):
        shape = trial.suggest_categorical("shape", [(3, 3), (5, 5), (7, 7)])
        huge = trial.suggest_int("huge", 0, 2**60)
        trial.suggest_float("one", 1.0, 1.0)
        return shape[0] + trial.suggest_float("x", 0.0, 1.0) + (huge < 0)

    with pytest.warns(UserWarning, match="Choices for a categorical"):
        study.optimize(many, n_trials=4)
    assert set(study.sampler.infer_relative_search_space(study, study.trials[0])) == {"shape", "x"}
    assert all(isinstance(trial.params["shape"], tuple) for trial in study.trials)


def test_independent_values_depend_on_the_trial():
    one, two = (study_of(DRESampler(seed=seed)) for seed in (0, 1))
    assert one.ask(DISTRIBUTIONS).params != one.ask(DISTRIBUTIONS).params
    again = study_of(DRESampler(seed=0))
    assert again.ask(DISTRIBUTIONS).params == one.trials[0].params
    assert two.ask(DISTRIBUTIONS).params != one.trials[0].params
    inputs = study_of(DRESampler(seed=0, independent_sampler=RandomSampler(seed=5)))
    assert inputs.ask(DISTRIBUTIONS).params == study_of(RandomSampler(seed=5)).ask(DISTRIBUTIONS).params


@pytest.fixture
def independent(monkeypatch):
    """The hyperparameters that are drawn independently, as (trial, name)."""
    calls = []
    sample = DRESampler.sample_independent

    def record(self, study, trial, name, distribution):
        calls.append((trial.number, name))
        return sample(self, study, trial, name, distribution)

    monkeypatch.setattr(DRESampler, "sample_independent", record)
    return calls


@pytest.mark.parametrize(
    ("space", "ranges", "first"),
    [
        (None, [(0.0, 1.0), (0.0, 1.0), (0.0, 2.0)], {(0, "x"), (0, "kernel")}),  # widened
        (None, [(0.0, 1.0), (0.5, 1.0)], {(0, "x"), (0, "kernel"), (1, "x")}),  # narrowed
        (SPACE, [(0.0, 0.01)], {(0, "x")}),  # narrower than the space
    ],
)
def test_a_range_that_changes_is_searched(engine_calls, independent, space, ranges, first):
    def objective(trial):
        x = trial.suggest_float("x", *ranges[min(trial.number, len(ranges) - 1)])
        return x + (trial.suggest_categorical("kernel", ["rbf", "poly"]) == "rbf")

    study = study_of(DRESampler(space, seed=0, warn_independent_sampling=False))
    study.optimize(objective, n_trials=6)
    assert set(independent) <= first
    low, high = ranges[-1]
    fitting = [trial for trial in study.trials[:-1] if low <= trial.params["x"] <= high]
    assert [o.params["x"] for o in engine_calls[-1]["observed"]] == [trial.params["x"] for trial in fitting]


def test_a_trial_that_was_pruned_early(engine_calls, independent):
    """It counts, and takes no hyperparameter out of the search."""

    def pruned_at_first(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number == 1:
            raise optuna.TrialPruned
        return x + trial.suggest_float("y", 0.0, 1.0)

    study = study_of(DRESampler(seed=0))
    study.optimize(pruned_at_first, n_trials=4)
    assert {number for number, _ in independent} == {0}
    assert len(engine_calls[-1]["observed"]) == 3


def test_independent_sampling_is_warned_of_once(caplog):
    def by_run(trial):
        rest = (trial.suggest_float(name, 0.0, 1.0) for name in ("y", "") if trial.number != 1)
        return trial.suggest_float("x", 0.0, 1.0) + sum(rest)

    optuna.logging.enable_propagation()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for warns, expected in (
        (True, [f"The parameter `{name}` in Trial#2 is sampled independently" for name in ("y", "")]),
        (False, []),
    ):
        caplog.clear()
        study_of(DRESampler(seed=0, warn_independent_sampling=warns)).optimize(by_run, n_trials=5)
        assert [record.message.partition(" using")[0] for record in caplog.records] == expected
    study = study_of(DRESampler(seed=0))
    trial = study.ask()
    study.add_trial(optuna.create_trial(value=0.0))  # of another worker: the space of `trial` is without it
    trial.suggest_float("x", 0.0, 1.0)
    assert not caplog.records
    optuna.logging.disable_propagation()


test_invalid_arguments = error_table(
    DreError,
    (lambda: DRESampler(0), "search space"),
    (lambda: DRESampler(SPACE, SPACE), "surrogate must be a Surrogate"),
    (lambda: DRESampler(WITH_STARTS, WITH_STARTS), "has one surrogate"),
    (lambda: DRESampler(seed=-1), "seed"),
    (lambda: DRESampler(["x"]), "search space"),
    (lambda: DRESampler({"x": (0.0, 1.0)}), "distributions"),
    (lambda: DRESampler({"x": FloatDistribution(0.0, 1.0)}, WITH_STARTS), "only in the surrogate"),
)


def test_shared_suggestions_fit_a_database(engine_calls, tmp_path):
    """Longer than an attribute may be there: 2,048 characters."""
    space = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(90)}
    study = study_of(DRESampler(space, seed=0), storage=f"sqlite:///{tmp_path}/studies.db")
    first = study.ask()
    first.suggest_float("x0", 0.0, 1.0)
    study.ask().suggest_float("x0", 0.0, 1.0)
    pending = engine_calls[-1]["running"]
    assert [set(params) for params in pending] == [set(space)]
    assert pending[0]["x0"] == first.params["x0"]
    assert pending[0]["x89"] == first.suggest_float("x89", 0.0, 1.0)
