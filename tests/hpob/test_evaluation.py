"""HPO-B's protocol on one method, into a file that grows and is gone on with."""

import dataclasses
import gc
import json
import shutil
import weakref
from itertools import islice, zip_longest
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import SPLITS, load_space, read_results
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.hpob import Evaluation, Plan, evaluation
from dre_jax.methods.dre import backends
from dre_jax.methods.dre.backends.provenance import backend
from dre_jax.methods.storage import provenance


@pytest.fixture
def plan(data):
    return Plan(data=data, spaces=("s", "t"), method="random", trials=4)


def test_the_result_file(plan, tmp_path, spaces):
    out = tmp_path / "random.json"
    evaluation = Evaluation(plan, out)
    assert (evaluation.total, evaluation.done) == (18, 0)
    for count, run in enumerate(evaluation, start=1):
        # Each run is in the file when it is handed out.
        there = read_results(out)
        assert len(list(there.runs())) == count == evaluation.done
        trace = there.traces[run.space][run.dataset][run.seed]
        np.testing.assert_array_equal(trace, run.trace)
        assert len(trace) == 5
        assert (np.diff(trace) >= 0).all()
        # Entry 0 is the best of the design, and all are values of the task's table, normalised with its whole range.
        y = spaces[run.space].test[run.dataset].y
        y = (y - y.min()) / (y.max() - y.min())
        assert trace[0] == pytest.approx(y[spaces[run.space].designs[run.dataset][run.seed]].max(), abs=1e-12)
        assert np.abs(trace[:, None] - y[None]).min(axis=1).max() < 1e-12
    assert count == 18
    assert set(there.traces) == {"s", "t"}
    assert (there.meta["method"], there.meta["protocol"]["trials"]) == ("random", 4)
    assert there.meta["versions"]["jax"] == jax.__version__
    summary = evaluation.summary()
    mean = np.mean([1 - trace[-1] for *_, trace in there.runs()])
    assert summary.startswith("random: 18 runs, ")
    assert f"{mean:.4f} at 4 trials" in summary


@pytest.mark.parametrize("after", [1, 11])
def test_an_interrupted_evaluation_resumes(plan, tmp_path, after, content):
    whole, out = tmp_path / "whole.json", tmp_path / "out.json"
    reference = {run[:3] for run in Evaluation(plan, whole)}
    assert len(list(islice(Evaluation(plan, out), after))) == after
    again = Evaluation(plan, out)
    assert again.done == after
    rest = {run[:3] for run in again}
    assert len(rest) == 18 - after
    assert rest < reference
    assert content(out) == content(whole)
    assert list(Evaluation(plan, out)) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "whole.json"]


@pytest.mark.parametrize("theirs", [("s",), ("s", "t")])
def test_two_that_write_one_file_lose_nothing(plan, tmp_path, theirs, content):
    alone, out = tmp_path / "alone.json", tmp_path / "out.json"
    list(Evaluation(plan, alone))
    start = [Evaluation(dataclasses.replace(plan, spaces=spaces), out) for spaces in (theirs, ("t",))]
    for _ in zip_longest(*start):
        pass
    assert [evaluation.done for evaluation in start] == [9 * len(theirs), 9]
    assert content(out)["t"] == content(alone)["t"]
    assert list(Evaluation(plan, out)) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.json", "out.json"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"trials": 3}, ["protocol"]),
        ({"method": "tpe", "settings": {"startup": 3}}, ["method: tpe here, random in the file", "configuration"]),
        ({"seed": 1}, ["seed: 1 here, 0 in the file"]),
    ],
)
def test_another_evaluation_is_refused(plan, tmp_path, changed, named):
    out, other = tmp_path / "random.json", dataclasses.replace(plan, **changed)
    late = Evaluation(other, out)
    next(iter(Evaluation(plan, out)))
    before = out.read_bytes()
    # Also where it came first only after this one had looked.
    for begin in (lambda: Evaluation(other, out), lambda: next(iter(late))):
        with pytest.raises(DataError, match="holds another evaluation") as caught:
            begin()
        assert all(name in str(caught.value) for name in [*named, str(out)])
        assert "versions" not in str(caught.value)
        assert out.read_bytes() == before
    result = json.loads(before)
    result["s"]["x"]["test0"] = result["s"]["x"]["test0"][:2]
    out.write_text(json.dumps(result))
    with pytest.raises(DataError, match=r"dataset 'x', seed 'test0': a run must have 4 trials, but has 1"):
        Evaluation(plan, out)


def test_another_backend_gives_a_warning_and_is_recorded(plan, tmp_path, monkeypatch):
    out, mine, other = tmp_path / "random.json", backend(), {"steps": "native 1a2b", "device": "H200"}
    next(iter(Evaluation(plan, out)))
    for module in (provenance, backends.provenance):
        monkeypatch.setattr(module, "backend", lambda **_: other)
    with pytest.warns(DataWarning, match="goes on by native 1a2b on H200"):
        again = Evaluation(plan, out)
    assert len(list(again)) == 17
    assert read_results(out).meta["backends"] == [mine, other]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"seeds": ("test0", "test7")}, ConfigError, "test0, test1, test2, but got test7"),
        ({"spaces": ("untested",)}, DataError, "'untested' has no test tasks"),
        ({"split": "none"}, ConfigError, "the split must be test or validation, but got 'none'"),
        ({"continuous": "fixed"}, ConfigError, "continuous and surrogates go together"),
        ({"continuous": "late", "surrogates": Path()}, ConfigError, "continuous must be one of hpob, fixed"),
    ],
)
def test_plans_that_cannot_be(plan, tmp_path, changed, error, message):
    with pytest.raises(error, match=message):
        Evaluation(dataclasses.replace(plan, **changed), tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_design_is_an_error_before_the_first_run(plan, tmp_path):
    shutil.copytree(plan.data, tmp_path, dirs_exist_ok=True)
    designs = tmp_path / "bo-initializations.json"
    without = {space: {**seeds, "y": {}} for space, seeds in json.loads(designs.read_text()).items()}
    designs.write_text(json.dumps(without))
    with pytest.raises(DataError, match="space 's', dataset 'y': an initial design is needed"):
        Evaluation(dataclasses.replace(plan, data=tmp_path), tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


@dataclasses.dataclass(frozen=True)
class Fits:
    """Notes what it is fitted on."""

    def fit(self, meta, key):
        FITTED_ON.append((meta.name, *("".join(meta.split(split)) for split in SPLITS)))

    def acquire(self, params, history, candidates, key):
        return jnp.zeros(candidates.where.shape, jnp.float32)


FITTED_ON = []


@pytest.fixture
def only_new_objects():
    """Has `gc.collect` look at the objects of the test alone: at those of all tests before it looks for seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.slow
def test_one_search_space_is_in_memory_at_a_time(plan, tmp_path, monkeypatch, content, only_new_objects):
    alive = []

    def load(*arguments, **options):
        gc.collect()
        loaded.append((arguments[1], options["splits"], sum(ref() is not None for ref in alive)))
        space = load_space(*arguments, **options)
        alive.append(weakref.ref(space))
        return space

    loaded, cleared = [], []
    monkeypatch.setattr(evaluation, "load_space", load)
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(loaded[-1][0]))
    names = ("s", "t", "wide")
    plan = dataclasses.replace(plan, spaces=names, trials=1, seeds=("test0",))
    for run in Evaluation(plan, tmp_path / "a.json"):
        assert loaded[-1][0] == run.space
    # No other space is alive when one is loaded, and of each only the split that is evaluated is read. Programs are
    # dropped once no space to come has as many columns.
    assert loaded == [(name, ["test"], 0) for name in names]
    assert cleared == ["t"]
    loaded.clear()
    list(Evaluation(dataclasses.replace(plan, method=Fits()), tmp_path / "b.json"))
    assert loaded == [(name, ["test", "train", "validation"], 0) for name in names]
    assert [(name, "ab", "v", "") for name in names] == FITTED_ON
    assert content(tmp_path / "b.json")["_meta"]["method"] == "Fits"
    FITTED_ON.clear()  # tasks are not learned from, nor is anything chosen on them, when they are optimised
    list(Evaluation(dataclasses.replace(plan, method=Fits(), split="validation"), tmp_path / "v.json"))
    assert [(name, "ab", "", "") for name in names] == FITTED_ON
    FITTED_ON.clear()  # a folder may lack the file of the validation tasks
    shutil.copytree(plan.data, tmp_path / "few", ignore=shutil.ignore_patterns("meta-validation*"))
    few = dataclasses.replace(plan, method=Fits(), data=tmp_path / "few", spaces=("s",))
    list(Evaluation(few, tmp_path / "few.json"))
    assert FITTED_ON == [("s", "ab", "", "")]
    # What is in the file already is not loaded again.
    list(Evaluation(dataclasses.replace(plan, spaces=("s",)), tmp_path / "c.json"))
    loaded.clear()
    list(Evaluation(plan, tmp_path / "c.json"))
    assert [name for name, *_ in loaded] == ["t", "wide"]


@pytest.mark.parametrize(
    ("changed", "kind"),
    [({"method": "rf"}, "a host method"), ({"continuous": "fixed", "surrogates": Path()}, "a continuous search")],
)
def test_several_processes_are_for_compiled_methods_on_tables(plan, tmp_path, monkeypatch, changed, kind):
    monkeypatch.setattr(evaluation.processes, "count", lambda: 2)
    with pytest.raises(ConfigError, match=f"is {kind}: one process does it"):
        Evaluation(dataclasses.replace(plan, **changed), tmp_path / "out.json")
