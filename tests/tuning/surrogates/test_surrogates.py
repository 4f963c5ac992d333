"""Surrogates: what was saved suggests as before; other spaces and directions are refused, and the message says why."""

import sys
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import optuna
import pytest
from sklearn.dummy import DummyClassifier

from dre_jax.data import SearchSpace, Task
from dre_jax.data.columns import columns_of
from dre_jax.errors import CheckpointError, ConfigError, DataError
from dre_jax.methods import find
from dre_jax.methods.checkpoints.fitted import FittedMethod, load_fitted, save_fitted
from dre_jax.methods.storage.provenance import provenance
from dre_jax.space.hpob import from_hpob
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import Bool, Categorical, Evaluated, Float, Int, Optimizer, Space, Surrogate, past_of
from dre_jax.tuning.optuna import DRESampler, to_optuna
from dre_jax.tuning.sklearn import DRESearchCV
from tests.error_messages import raises_line

SPACE = Space(
    {
        "C": Float(1e-3, 1e3, log=True),
        "kernel": Categorical(["rbf", "poly", None]),
        "degree": Int(2, 5, when={"kernel": ["poly"]}),
        "shrink": Bool(),
    }
)
EXTRA = {"width": Int(1, 64), "mode": Categorical(["fast", "slow"])}
QUICK = {"prior.steps": 20, "fitting.steps": 2}


def of(value):
    return {"C": 10.0 ** (3 * value), "kernel": "poly", "degree": 3, "shrink": value > 0.5}


@pytest.fixture(scope="module")
def past():
    rng = np.random.default_rng(0)
    tasks = {str(t): [Evaluated(of(x), -x - 0.1 * t) for x in rng.random(12)] for t in range(3)}
    return past_of(SPACE, tasks, direction="minimize")


@pytest.fixture(scope="module")
def surrogate(past):
    return Surrogate.fit(past, method="gcp", settings=QUICK, seed=1)


@pytest.mark.slow
def test_a_line_a_terminal_or_a_function_shows_the_progress_of_a_fit(past, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    fit, shown = partial(Surrogate.fit, past, method="gcp", settings=QUICK), []
    fit()
    assert capsys.readouterr() == ("", "dre_jax: gcp: compiling, and learning from 3 past tasks\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fit(quiet=True)
    fit(progress=shown.append)
    assert capsys.readouterr() == ("", "")
    assert shown == [("gcp: compiling, and learning from 3 past tasks", 0, None)]
    fit()
    assert "learning from 3 past tasks" in capsys.readouterr().err


@pytest.fixture(scope="module")
def saved(surrogate, tmp_path_factory):
    """Treat as read-only."""
    folder = tmp_path_factory.mktemp("surrogate")
    surrogate.save(folder)
    return folder


def suggestions(surrogate):
    """Eight in a row: the start design, and beyond it what the method says."""
    optimizer = Optimizer(SPACE, surrogate, seed=3)
    optimizer.optimize(lambda trial: (trial.number - 5) ** 2, 8)
    return [trial.params for trial in optimizer.trials]


def test_a_saved_surrogate_suggests_as_before(surrogate, saved):
    result = Surrogate.load(saved)
    for field in ("space", "name", "method", "start", "facts"):
        assert getattr(result, field) == getattr(surrogate, field), field
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b, strict=True), result.params, surrogate.params)
    assert {type(leaf) for leaf in jax.tree.leaves(result.params)} == {np.ndarray}  # samplers are pickled
    assert suggestions(result) == suggestions(surrogate)
    assert len(result.start) == 2
    assert result.facts["seed"] == 1


def test_the_start_design_is_larger_after_a_single_past_task():
    past = past_of(SPACE, {"a": [Evaluated(of(x), -x) for x in np.linspace(0, 1, 12)]}, direction="minimize")
    assert len(Surrogate.fit(past, method="gcp", settings=QUICK).start) == 4  # of several tasks, two


def test_the_size_of_a_start_design_is_a_count():
    with raises_line(ConfigError, "n_start must be a whole number from 0, but got -1"):
        Surrogate.fit(past_of(SPACE, {}, direction="minimize"), method="gcp", n_start=-1)


def test_malformed_surrogates(tmp_path, saved):
    whole = load_fitted(saved)
    content = {"space": {"C": {"type": "float", "low": 0, "high": 1}}, "start": [], "direction": None, "metric": None}
    for name, damaged in (
        ("space", {"C": {"type": "complex"}}), ("space", None), ("start", [3]), ("start", [{"C": 2}]),
        ("direction", "up"), ("metric", 3),
    ):  # fmt: skip
        save_fitted(tmp_path, replace(whole, extra={"tuning": {**content, name: damaged}}))
        with pytest.raises(CheckpointError, match=r"the surrogate in .* is not this version's"):
            Surrogate.load(tmp_path)


def spaced(**parameters):
    return {**SPACE, **parameters}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({name: SPACE[name] for name in SPACE if name != "degree"}, "degree (only in the surrogate)"),
        (spaced(C=Float(1e-4, 1e3, log=True)), "C ([0.0001, 1000.0] here, [0.001, 1000.0] in the surrogate)"),
        (spaced(C=Categorical([1, 2])), "C (a categorical here, a number in the surrogate)"),
        (spaced(kernel=Categorical(["poly", "svm"])), "choices ['poly', 'svm'] here, ['rbf', 'poly', None] in the sur"),
        (spaced(**EXTRA), "width (only here), mode (only here); surrogate.for_space(space) learns anew from the past"),
        ({"c": Float(0, 1)}, "C (only in the surrogate), kernel (only in the surrogate), degree (only"),
    ],
)
def test_other_spaces_are_refused_by_name(surrogate, space, message):
    with raises_line(DataError, "the surrogate must know the space, but they differ: ", message):
        Optimizer(Space(space), surrogate)


@pytest.mark.usefixtures("quiet_optuna")
def test_a_study_of_the_other_direction_is_refused(surrogate):
    def study(surrogate):
        return optuna.create_study(direction="maximize", sampler=DRESampler(surrogate=surrogate, seed=0))

    losses = replace(surrogate, metric="loss")
    for use in (
        lambda surrogate: Optimizer(SPACE, surrogate, direction="maximize"),
        lambda surrogate: study(surrogate).ask(to_optuna(SPACE)),
        lambda surrogate: DRESearchCV(DummyClassifier(), surrogate=surrogate).fit([[0.0]] * 10, [0, 1] * 5),
    ):
        with raises_line(DataError, "minimize loss, and the study is to maximize: pass direction='minimize'"):
            use(losses)
    turned = losses.with_direction("maximize")
    assert (turned.direction, turned.metric) == ("maximize", None)
    first = Optimizer(SPACE, turned, direction="maximize").ask()
    assert first.params == study(turned).ask(to_optuna(SPACE)).params == surrogate.start[0]


def test_a_narrower_space_is_read(surrogate, saved):
    """Fewer choices, tighter bounds, another order: encoded as the surrogate knows them."""
    space = Space(
        {"kernel": Categorical(["poly"]), "degree": Int(3, 3), "C": Float(0.1, 1.0, log=True), "shrink": Bool()}
    )
    assert Optimizer(space, surrogate).space == space
    assert Surrogate.load(saved, space=space).space == SPACE
    for point in sobol_points(16, len(space), 0):
        params = space.params(point)
        columns = space.layout_in(SPACE).columns(space.point(params))
        np.testing.assert_allclose(columns, SPACE.encode(params), rtol=0, atol=1e-12)


# What `dre-jax meta-train` writes: columns with their names, and what the data say of the ranges.

DESCRIPTOR = {
    "variables": {
        "C": {"kind": "float", "min_before_tf": 1e-3, "max_before_tf": 1e3},
        "depth": {"kind": "integer", "min_before_tf": 1, "max_before_tf": 9},
    },
    "variables_order": ["C", "depth"],
    "variables_to_apply_log": ["C"],
}
PLAIN = {"variables": {}, "variables_order": ["alpha", "lambda"], "variables_to_apply_log": []}
GLMNET = {
    **PLAIN,
    "variables": {
        "alpha": {"min_before_tf": 0.0, "max_before_tf": 1.0},
        "lambda": {"min_before_tf": 0.001, "max_before_tf": 1000.0},
    },
}


@pytest.fixture(scope="module")
def meta_trained(tmp_path_factory):
    rng = np.random.default_rng(0)
    tasks = {n: Task(n, rng.random((12, 2), np.float32), rng.random(12)) for n in "ab"}
    meta, key = SearchSpace("s", train=tasks), jax.random.key(0)
    method = find("gcp").make(QUICK)
    params, facts = method.fit(meta, key), provenance(meta, key)

    def save(name, columns, **extra):
        description = {"space": name, "n_columns": 2, "columns": columns, "facts": facts, "extra": extra}
        folder = tmp_path_factory.mktemp("surrogate")
        save_fitted(folder, FittedMethod(name="gcp", method=method, params=params, **description))
        return folder

    return save


def test_meta_trained_where_the_data_say_all(meta_trained):
    rows = [[0.5, 0.25], [1.0, 1.0]]
    folder = meta_trained("s", columns_of(DESCRIPTOR), descriptor=DESCRIPTOR, start_rows=rows)
    result = Surrogate.load(folder)
    assert result.space["depth"] == Int(1, 9)
    low, one, high = np.log(np.array([1e-3, 1.0, 1e3]) + 1e-4)
    row = result.space.encode({"C": 1.0, "depth": 3})
    np.testing.assert_allclose(row, [(one - low) / (high - low), 0.25], rtol=1e-6)
    assert [params["depth"] for params in result.start] == [3, 9]
    assert Optimizer(surrogate=result).ask()["C"] == pytest.approx(result.start[0]["C"])
    with pytest.raises(DataError, match=r"depth \(only in the surrogate\)"):
        Surrogate.load(folder, space=Space({"C": Float(1e-3, 1e3, log=True)}))


def test_meta_trained_on_hpob(meta_trained):
    result = Surrogate.load(meta_trained("5860", columns_of(GLMNET), descriptor=GLMNET))
    assert result.space == from_hpob("5860", GLMNET)
    assert result.start == ()
    assert set(Optimizer(surrogate=result).ask().params) == {"alpha", "lambda"}


def test_meta_trained_where_the_data_name_columns_alone(meta_trained):
    folder = meta_trained("s", columns_of(PLAIN), descriptor=PLAIN)
    with pytest.raises(CheckpointError, match=r"alpha, lambda: .*space="):
        Surrogate.load(folder)
    space = Space({"alpha": Float(0.0, 1.0), "lambda": Float(0.0, 9.0)})
    assert Surrogate.load(folder, space=space).space is space
    other = Space({"alpha": Float(0.0, 1.0), "lambda": Float(0.1, 9.0, log=True), "s": Int(0, 3)})
    with raises_line(CheckpointError, "lambda (log float here, float in the checkpoint); s (only here)"):
        Surrogate.load(folder, space=other)


def test_meta_trained_where_the_data_say_nothing(meta_trained):
    folder = meta_trained("s", None)
    with pytest.raises(CheckpointError, match=r"meta-dataset-descriptors\.json"):
        Surrogate.load(folder, space=Space({"alpha": Float(0.0, 1.0), "lambda": Float(0.0, 9.0)}))
