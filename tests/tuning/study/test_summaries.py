"""What `repr` says of a user's objects, and the importance of hyperparameters."""

import numpy as np
import pytest
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

import dre_jax
from dre_jax.data import bundled
from dre_jax.errors import ConfigError, DataError
from dre_jax.functions import optimize_functions
from dre_jax.hpob import HPOBHandler
from dre_jax.tuning import (
    Categorical,
    EngineConfig,
    Evaluated,
    Float,
    Optimizer,
    Optimizers,
    Sources,
    SourceStudy,
    Space,
    Surrogate,
    past_of,
)
from dre_jax.tuning.optuna import DREPruner, DRESampler, to_study
from tests.error_messages import raises_line

SPACE = Space({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0), "k": Categorical(["a", "b"])})
RANDOM = EngineConfig(method="random")


def study(n=20, **options):
    config = None if "directions" in options else RANDOM  # which says nothing of several objectives
    optimizer = Optimizer(SPACE, seed=0, config=config, **options)
    for trial in optimizer.ask(n):
        value = trial["x"] ** 2 + 0.01 * trial["y"]
        optimizer.tell(trial, {"a": value, "b": trial["y"]} if optimizer.directions else value)
    return optimizer


def past():
    points = np.linspace(-1, 1, 5)
    return past_of(SPACE, {"a": [Evaluated({"x": x, "y": 0.0, "k": "a"}, x) for x in points]}, direction="minimize")


def studies():
    result = Optimizers({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, 3, method="random", direction="maximize")
    result.tell(result.ask(), [1.0, 3.0, float("nan")])
    return result


NAMES = "hyperparameters=['x', 'y', 'k']"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Optimizer(SPACE, direction="maximize"), f"Optimizer({NAMES}, direction='maximize', n_trials=0)"),
        (
            lambda: Optimizer(SPACE, Surrogate(SPACE, "dre", None, None)),
            f"Optimizer({NAMES}, direction='minimize', surrogate='dre', n_trials=0)",
        ),
        (studies, "Optimizers(hyperparameters=['x', 'y'], direction='maximize', n_studies=3, n_trials=3, best=3.0)"),
        (past, f"Past({NAMES}, tasks=['a'], n_trials=5, direction='minimize')"),
        (lambda: past().tasks["a"], "Task(name='a', n_rows=5, n_columns=4)"),
        (lambda: past().search_space(), "SearchSpace(name='past', train=['a'])"),
        (lambda: Surrogate(SPACE, "dre", None, None), f"Surrogate(name='dre', {NAMES}, n_tasks=0)"),
        (
            lambda: Sources((SourceStudy("week 1", 0.9, 0.71, 0.2, 4.2),), {0: 0.8, 12: 0.95}, 1),
            "Sources(studies=['week 1'], n_past=1, past_weights={12: 0.95}, mislead=False)",
        ),
        (lambda: DRESampler(SPACE, seed=3), "DRESampler(search_space=['x', 'y', 'k'], seed=3)"),
        (lambda: DREPruner(error=0.1), "DREPruner(error=0.1)"),
        (lambda: HPOBHandler(str(bundled.path())), f"HPOBHandler(root_dir={str(bundled.path())!r}, mode='v3-test')"),
        (lambda: dre_jax.Suggester(dre_jax.RandomSearch()), "Suggester(method='RandomSearch', has_params=False)"),
        (
            lambda: optimize_functions(lambda _, x: x[0], None, 2, n_trials=3, method="random"),
            "FunctionSearches(n_tasks=1, n_seeds=1, n_trials=3, n_coordinates=2)",
        ),
    ],
)
def test_one_line_says_what_an_object_is(make, expected):
    assert repr(make()) == expected


def test_the_best_and_the_front_are_in_the_line():
    optimizer = study()
    assert repr(optimizer).endswith(f"n_trials=20, best={min(trial.value for trial in optimizer.trials)!r})")
    several = repr(study(directions={"a": "minimize", "b": "maximize"}))
    assert "directions={'a': 'minimize', 'b': 'maximize'}, n_trials=20, n_front=" in several


def test_public_objects_say_what_they_are():
    """No class that a user makes shows its address."""
    classes = [getattr(module, name) for module in (dre_jax, dre_jax.tuning) for name in module.__all__]
    assert [one.__name__ for one in classes if isinstance(one, type) and one.__repr__ is object.__repr__] == []


@pytest.mark.usefixtures("quiet_optuna")
def test_importance_is_that_of_optuna():
    optimizer = study(60)
    shares = optimizer.importance()
    expected = get_param_importances(to_study(optimizer), evaluator=PedAnovaImportanceEvaluator())
    assert shares == pytest.approx(expected)
    assert next(iter(shares)) == "x"
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.usefixtures("quiet_optuna")
def test_the_figure_shows_the_importance():
    optimizer = study(60)
    bars = optimizer.figures()["Importance"].axes[0].patches
    assert sorted(bar.get_width() for bar in bars) == pytest.approx(sorted(optimizer.importance().values()))


@pytest.mark.usefixtures("quiet_optuna")
def test_importance_of_each_objective():
    several = study(60, directions={"a": "minimize", "b": "maximize"})
    assert [next(iter(several.importance(objective=name))) for name in ("a", "b")] == ["x", "y"]
    with raises_line(ConfigError, "the objectives of this study are 'a', 'b', but got objective=None"):
        several.importance()
    with raises_line(ConfigError, "the objectives of this study are None, but got objective='a'"):
        study(2).importance(objective="a")
    with raises_line(DataError, "the importance of hyperparameters needs complete trials with different values"):
        study(1).importance()
