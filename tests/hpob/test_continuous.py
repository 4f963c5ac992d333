"""The continuous benchmark against HPO-B's contract stated once more, on small surrogates of the bundled data."""

import json
import re
import shutil
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from dre_jax.data import bundled, read_results
from dre_jax.errors import ConfigError, DataError, MethodError
from dre_jax.hpob import Evaluation, HPOBHandler, Plan
from dre_jax.hpob.continuous import Objective, run_continuous

xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed: pip install 'dre_jax[hpob]'")

SPACES = ("svm", "nearest-neighbours")


@pytest.fixture(scope="module")
def surrogates(tmp_path_factory):
    """Surrogates of two search spaces' test tasks, trained and saved as HPO-B's were."""
    folder = tmp_path_factory.mktemp("saved-surrogates")
    ranges = {}
    for space in SPACES:
        for dataset, task in bundled.load(space).test.items():
            parameters = {"max_depth": 4, "eta": 0.3, "objective": "reg:squarederror", "nthread": 1}
            booster = xgboost.train(parameters, xgboost.DMatrix(task.X, label=task.y, nthread=1), 15)
            booster.save_model(folder / f"surrogate-{space}-{dataset}.json")
            # HPO-B's ranges are the tables', which a surrogate hardly reaches; every other one here can be.
            reached = np.quantile(booster.predict(xgboost.DMatrix(task.X, nthread=1)), 0.8)
            high = float(reached if len(ranges) % 2 else task.y.max())
            ranges[f"surrogate-{space}-{dataset}"] = {"y_min": float(task.y.min()), "y_max": high}
    (folder / "summary-stats.json").write_text(json.dumps(ranges))
    return folder


class Climber:
    """Steps from the best, with a memory, own names of the arguments, and the shape of HPO-B's own example."""

    def __init__(self):
        self.rng, self.width = np.random.default_rng(1), 0.5

    def observe_and_suggest(self, observed, responses):
        assert responses.shape == (len(observed), 1)
        assert ((responses >= 0) & (responses <= 1)).all()
        self.width *= 0.95
        best = observed[np.argmax(responses)]
        return np.clip(best + self.width * self.rng.normal(size=(1, len(best))), 0, 1)


def stated(folder, method, space, dataset, seed, n_trials):
    """HPO-B's `evaluate_continuous`: what the last evaluation gave is not looked at before it is written down."""
    name = f"surrogate-{space}-{dataset}"
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(folder / f"{name}.json")
    low, high = (json.loads((folder / "summary-stats.json").read_text())[name][key] for key in ("y_min", "y_max"))
    loaded = bundled.load(space)
    rows = loaded.designs[dataset][seed]
    x, y = loaded.test[dataset].X[rows].astype(np.float64), loaded.test[dataset].y[rows][:, None]
    history = []
    while len(history) < n_trials:
        scaled = np.clip((y - low) / (high - low), 0, 1)
        best = np.max(scaled)
        history.append(best)
        point = method.observe_and_suggest(x, scaled)
        value = booster.predict(xgboost.DMatrix(point.reshape(-1, x.shape[1]), nthread=1))
        y = np.append(y, value).reshape(-1, 1)
        x = np.append(x, point).reshape(-1, x.shape[1])
        if max(y) >= high:
            break
    return [*history, best, *[1] * (n_trials - len(history))], y, (low, high)


def test_counts_as_hpob_to_the_last_bit(surrogates):
    handler = HPOBHandler(bundled.path(), surrogates_dir=surrogates)
    assert handler.surrogates_stats == json.loads((surrogates / "summary-stats.json").read_text())
    late, unseen = 0, 0
    for space in SPACES:
        for number, dataset in enumerate(handler.get_datasets(space)):
            n_trials = (1, 2, 9)[number % 3]
            expected, y, (low, high) = stated(surrogates, Climber(), space, dataset, "test1", n_trials)
            assert handler.evaluate_continuous(Climber(), space, dataset, "test1", n_trials) == expected
            # And the other mode counts each evaluation when it is made.
            fixed = handler.evaluate_continuous(Climber(), space, dataset, "test1", n_trials, counting="fixed")
            best = np.maximum.accumulate(np.clip((y[:, 0] - low) / (high - low), 0, 1))[4:]
            assert fixed == [*best, *[1.0] * (n_trials + 1 - len(best))]
            late += 1 in expected and expected.index(1) > fixed.index(1)
            unseen += expected[-1] < fixed[-1]
    # The tasks are such that the two modes differ, in both ways.
    assert late > 0
    assert unseen > 0


def test_a_range_that_is_empty(surrogates):
    flat, x, y = Objective("flat", None, 0.5, 0.5), np.zeros((5, 2)), np.zeros(5)
    for counting in ("hpob", "fixed"):
        assert run_continuous(Climber(), flat, x, y, 3, counting=counting).tolist() == [0.5] * 4


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (np.zeros(13), "returned shape (13,)"),
        (None, "returned shape ()"),
        ("near", "returned str"),
        ([0.5] * 13 + [float("nan")], "returned nan in column 13"),
        ([0.5] * 12 + [1.5, 0.5], "returned 1.5 in column 12"),
        ([1.0 + 1e-7, *[0.0] * 13], None),  # a list, and a rounding error, will do
    ],
)
def test_answers(surrogates, answer, said):
    peer = type("Peer", (), {"observe_and_suggest": lambda self, x_obs, y_obs: answer})()
    handler = HPOBHandler(bundled.path(), surrogates_dir=surrogates)
    task = "svm", handler.get_datasets("svm")[0], "test0", 3
    if said is None:
        assert len(handler.evaluate_continuous(peer, *task)) == 4
        return
    rule = "method Peer: observe_and_suggest must return a vector of 14 numbers in [0, 1]"
    with pytest.raises(MethodError, match=re.escape(f"{rule}, but {said}")):
        handler.evaluate_continuous(peer, *task)


@pytest.fixture
def plan(surrogates):
    return Plan(
        data=bundled.path(), method="random", spaces=("svm",), trials=4, seeds=("test0",), continuous="hpob",
        surrogates=surrogates,
    )  # fmt: skip


def test_malformed_surrogates(plan, surrogates, tmp_path):
    name = f"surrogate-svm-{next(iter(bundled.load('svm').test))}"
    folder = shutil.copytree(surrogates, tmp_path / "copy")
    broken, model, statistics = replace(plan, surrogates=folder), folder / f"{name}.json", folder / "summary-stats.json"
    narrow = xgboost.train({"nthread": 1}, xgboost.DMatrix(np.eye(3), label=np.arange(3)), 1)
    for change, message in (
        (lambda: model.write_text("{}"), f"{name}.json is no XGBoost model"),
        (lambda: narrow.save_model(model), "must have as many columns as the table"),
    ):
        change()
        evaluation = Evaluation(broken, tmp_path / "out.json")
        with pytest.raises(DataError, match=message):
            list(evaluation)
    for change, message in (
        (model.unlink, f"must hold {name}.json"),
        (lambda: statistics.write_text(json.dumps({name: {"y_min": "low"}})), "must hold"),
        (statistics.unlink, "summary-stats.json"),
    ):
        change()
        with pytest.raises(DataError, match=message):
            Evaluation(broken, tmp_path / "out.json")
    with pytest.raises(ConfigError, match="counting must be one of hpob, fixed, but got 'late'"):
        run_continuous(Climber(), Objective("s", None, 0, 1), np.zeros((5, 2)), np.zeros(5), 3, counting="late")


@pytest.mark.parametrize("method", [pytest.param("dre-ri", marks=pytest.mark.thorough), "dre-no-finetune"])
@pytest.mark.slow
def test_our_own_methods_and_resuming(plan, tmp_path, method, save_checkpoint, content):
    save_checkpoint(tmp_path / "checkpoints" / "svm", bundled.load("svm"))
    own = {"settings": {"epochs": 2}} if method == "dre-ri" else {"checkpoints": tmp_path / "checkpoints"}
    own_plan = replace(plan, method=method, trials=3, continuous="fixed", **own)
    whole, out = tmp_path / "whole.json", tmp_path / "out.json"
    runs = list(Evaluation(own_plan, whole))
    assert len(runs) == 10
    meta = read_results(whole).meta
    assert meta["protocol"]["benchmark"] == "HPO-B v3, continuous"
    assert meta["protocol"]["continuous"] == "fixed"
    assert meta["versions"]["xgboost"] == xgboost.__version__
    assert meta["configuration"]["points"]["even"] > 0
    assert meta["configuration"]["points"]["pending_strategy"] == "mean"
    assert len(list(islice(Evaluation(own_plan, out), 4))) == 4
    list(Evaluation(own_plan, out))
    assert content(out) == content(whole)
    with pytest.raises(DataError, match="holds another evaluation"):
        Evaluation(replace(own_plan, continuous="hpob"), out)
