"""HPO-B's protocol on one method, into a file that grows and is gone on with."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from functools import partial

import jax
import numpy as np
import pytest

from dre_jax import native
from dre_jax.benchmark import Evaluation, Plan, evaluation
from dre_jax.benchmark.runners import CompiledRunner
from dre_jax.data import SearchSpace, Task, fingerprint, read_results, write_dataset
from dre_jax.errors import CheckpointError, ConfigError, DataError, DataWarning
from dre_jax.model import ModelConfig
from dre_jax.search import BatchConfig, batch
from dre_jax.training import MetaTrainConfig
from dre_jax.training.checkpoint import Checkpoint, describe
from dre_jax.training.steps import start

MODEL = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
SEEDS = ("test0", "test1", "test2")


def make_space(name, n_columns=2, seed=0, test="xyz"):
    rng = np.random.default_rng(seed)

    def tasks(names):
        return {n: Task(n, rng.random((30, n_columns), dtype=np.float32), 7 * rng.random(30) - 3) for n in names}

    space = SearchSpace(name, train=tasks("ab"), validation=tasks("v"), test=tasks(test))
    designs = {n: {s: rng.permutation(30)[:3] for s in SEEDS} for n in (*space.validation, *space.test)}
    return dataclasses.replace(space, designs=designs)


SPACES = {"s": make_space("s"), "t": make_space("t", 3, seed=1), "untested": make_space("untested", test="")}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_dataset(folder, SPACES.values())
    return folder


@pytest.fixture
def plan(data):
    return Plan(data=data, spaces=("s", "t"), method="random", trials=4)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Checkpoints of random weights."""
    root = tmp_path_factory.mktemp("checkpoints")
    for name in ("s", "t"):
        save_checkpoint(root / name, name)
    return root


def save_checkpoint(folder, name, step=0):
    config, key, columns = MetaTrainConfig(), jax.random.key(0), SPACES[name].n_columns
    digest = fingerprint(SPACES[name])
    facts = describe(space=name, n_columns=columns, model=MODEL, config=config, key=key, fingerprint=digest)
    state = start(MODEL, config, columns, key)._replace(step=jax.numpy.int32(step))
    Checkpoint(folder).save(state, None, {**facts, "history": [], "best_step": None, "versions": {}})


def content(path):
    found = json.loads(path.read_text())
    found["_meta"].pop("versions")
    return found


def test_what_is_written(plan, tmp_path):
    out = tmp_path / "random.json"
    evaluation = Evaluation(plan, out)
    assert (evaluation.total, evaluation.done) == (18, 0)
    runs = list(evaluation)
    assert (evaluation.total, evaluation.done) == (18, 18)
    found = json.loads(out.read_text())
    assert {name for name in found if name != "_meta"} == {"s", "t"}
    for run in runs:
        trace = found[run.space][run.dataset][run.seed]
        np.testing.assert_array_equal(trace, run.trace)
        assert len(trace) == 5
        assert (np.diff(trace) >= 0).all()
        # Entry 0 is the best of the design, and all are values of the task's table, normalised with its whole range.
        y = SPACES[run.space].test[run.dataset].y
        y = (y - y.min()) / (y.max() - y.min())
        assert trace[0] == pytest.approx(y[SPACES[run.space].designs[run.dataset][run.seed]].max(), abs=1e-12)
        assert np.abs(np.array(trace)[:, None] - y[None]).min(axis=1).max() < 1e-12
    assert len({(run.space, run.dataset, run.seed) for run in runs}) == 18
    meta = found["_meta"]
    assert meta["method"] == "random"
    assert meta["protocol"]["trials"] == 4
    assert meta["versions"]["jax"] == jax.__version__
    assert f"{np.mean([1 - run.trace[-1] for run in runs]):.4f} at 4 trials" in evaluation.summary()
    assert "18 runs" in evaluation.summary()


def test_each_run_is_in_the_file_when_it_is_handed_out(plan, tmp_path):
    out = tmp_path / "random.json"
    evaluation = Evaluation(plan, out)
    for count, run in enumerate(evaluation, start=1):
        there = read_results(out)
        assert len(list(there.runs())) == count == evaluation.done
        np.testing.assert_array_equal(there.traces[run.space][run.dataset][run.seed], run.trace)


@pytest.mark.parametrize("after", [1, 4, 11])
def test_interrupted_and_gone_on_with(plan, tmp_path, after):
    whole, out = tmp_path / "whole.json", tmp_path / "out.json"
    reference = {run[:3] for run in Evaluation(plan, whole)}
    for count, _ in enumerate(Evaluation(plan, out), start=1):
        if count == after:
            break
    again = Evaluation(plan, out)
    assert again.done == after
    rest = {run[:3] for run in again}
    assert len(rest) == 18 - after
    assert rest < reference
    assert content(out) == content(whole)
    assert list(Evaluation(plan, out)) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "whole.json"]


def test_two_that_write_one_file_lose_nothing(plan, tmp_path):
    out = tmp_path / "out.json"
    begun = [Evaluation(dataclasses.replace(plan, spaces=(name,)), out) for name in ("s", "t")]
    for _ in zip(*begun, strict=True):
        pass
    assert len(list(read_results(out).runs())) == 18
    assert [evaluation.done for evaluation in begun] == [9, 9]
    assert list(Evaluation(plan, out)) == []
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.thorough
def test_two_that_do_the_same_runs(plan, tmp_path):
    alone, out = tmp_path / "alone.json", tmp_path / "out.json"
    list(Evaluation(plan, alone))
    for _ in zip(*(Evaluation(plan, out) for _ in range(2)), strict=True):
        pass
    assert content(out) == content(alone)


def test_another_that_came_first_is_not_written_over(plan, tmp_path):
    out = tmp_path / "out.json"
    mine, other = Evaluation(plan, out), Evaluation(dataclasses.replace(plan, seed=1), out)
    next(iter(other))
    there = out.read_bytes()
    with pytest.raises(DataError, match="holds another evaluation"):
        next(iter(mine))
    assert out.read_bytes() == there


def test_a_file_with_a_run_of_another_length(plan, tmp_path):
    out = tmp_path / "out.json"
    next(iter(Evaluation(plan, out)))
    found = json.loads(out.read_text())
    found["s"]["x"]["test0"] = found["s"]["x"]["test0"][:2]
    out.write_text(json.dumps(found))
    with pytest.raises(DataError, match=r"dataset 'x', seed 'test0': a run must have 4 trials, but has 1"):
        Evaluation(plan, out)


def test_checkpoints_for_who_reads_none(plan, tmp_path, checkpoints):
    for method, said in (("random", "learns nothing from past tasks"), ("gcp", "learns from the training tasks")):
        given = dataclasses.replace(plan, method=method, checkpoints=checkpoints)
        with pytest.warns(DataWarning, match=f"{method} reads no checkpoints: it {said}"):
            Evaluation(given, tmp_path / f"{method}.json")


CHILD = """
import sys
from pathlib import Path
from dre_jax.benchmark import Evaluation, Plan

plan = Plan(data=Path(sys.argv[1]), spaces=("s", "t"), method="random", trials=4)
for run in Evaluation(plan, Path(sys.argv[2])):
    print("a run", flush=True)
"""


@pytest.mark.multiprocess
def test_killed_and_gone_on_with(plan, tmp_path):
    whole, out = tmp_path / "whole.json", tmp_path / "out.json"
    list(Evaluation(plan, whole))
    command = [sys.executable, "-c", CHILD, str(plan.data), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        for _ in range(5):
            assert process.stdout.readline() == "a run\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode in (0, -signal.SIGKILL)
    again = Evaluation(plan, out)
    assert again.done >= 5
    list(again)
    assert content(out) == content(whole)


def test_seeds_and_splits(plan, tmp_path):
    two = dataclasses.replace(plan, spaces=("s",), seeds=("test2", "test0"), split="validation")
    runs = list(Evaluation(two, tmp_path / "two.json"))
    assert {run[:3] for run in runs} == {("s", "v", "test0"), ("s", "v", "test2")}
    # The seeds of the same plan, one after the other into one file, are the same runs.
    for seeds in (("test0",), ("test2",)):
        list(Evaluation(dataclasses.replace(two, seeds=seeds), tmp_path / "one.json"))
    assert content(tmp_path / "one.json") == content(tmp_path / "two.json")


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"trials": 3}, ["protocol"]),
        ({"split": "validation"}, ["protocol"]),
        ({"mode": "v3-test"}, ["protocol"]),
        ({"method": "dre-ri"}, ["method: dre-ri here, random in the file", "configuration"]),
        ({"seed": 1}, ["seed: 1 here, 0 in the file"]),
    ],
)
def test_another_evaluation_is_refused(plan, tmp_path, changed, named):
    out = tmp_path / "random.json"
    next(iter(Evaluation(plan, out)))
    before = out.read_bytes()
    with pytest.raises(DataError, match="holds another evaluation") as caught:
        Evaluation(dataclasses.replace(plan, **changed), out)
    for name in [*named, str(out)]:
        assert name in str(caught.value)
    assert "versions" not in str(caught.value)
    assert out.read_bytes() == before


def test_another_backend_is_told_of_and_recorded(plan, tmp_path, monkeypatch):
    out, mine, other = tmp_path / "random.json", native.backend(), {"steps": "native 1a2b", "device": "H200"}
    next(iter(Evaluation(plan, out)))
    for module in (native, native.trial):
        monkeypatch.setattr(module, "backend", lambda: other)
    with pytest.warns(DataWarning, match="goes on by native 1a2b on H200"):
        again = Evaluation(plan, out)
    assert len(list(again)) == 17
    assert read_results(out).meta["backends"] == [mine, other]


def test_from_a_checkpoint(plan, tmp_path, checkpoints):
    given = dataclasses.replace(plan, method="dre-no-finetune", spaces=("s",), checkpoints=checkpoints, trials=2)
    out = tmp_path / "dre.json"
    assert len(list(Evaluation(given, out))) == 9
    facts = content(out)["_meta"]["checkpoints"]["s"]
    assert (facts["step"], facts["fingerprint"]) == (0, fingerprint(SPACES["s"]))
    # The same file and a checkpoint that was trained further are not the same evaluation.
    save_checkpoint(tmp_path / "further" / "s", "s", step=7)
    with pytest.raises(DataError, match="checkpoints"):
        Evaluation(dataclasses.replace(given, checkpoints=tmp_path / "further"), out)


def test_search_spaces_as_one_program(plan, tmp_path, checkpoints, monkeypatch):
    given = dataclasses.replace(plan, method="dre-no-finetune", checkpoints=checkpoints, trials=2)
    assert len(list(Evaluation(given, tmp_path / "apart.json"))) == 18
    accelerator = partial(CompiledRunner, config=BatchConfig(side_by_side=True))
    monkeypatch.setattr(evaluation, "CompiledRunner", accelerator)
    sizes, run_grid = [], batch.run_grid
    monkeypatch.setattr(batch, "run_grid", lambda *a: sizes.append(len(a[2].x)) or run_grid(*a))
    together = Evaluation(given, tmp_path / "together.json")
    assert next(iter(together)).space == "s"
    assert len(list(together)) == 17
    # All tasks of both at once; then what is missing: two designs of one task, and three of five.
    assert sizes == [6, 1, 5]
    assert content(tmp_path / "together.json") == content(tmp_path / "apart.json")
    # One that is fitted anew reads the training tables, and goes space by space.
    assert not accelerator(dataclasses.replace(given, checkpoints=None), {}).together


def test_checkpoints_that_are_missing_or_of_another_space(plan, tmp_path, checkpoints):
    given = dataclasses.replace(plan, method="dre", checkpoints=tmp_path / "nowhere")
    out = tmp_path / "dre.json"
    with pytest.raises(CheckpointError, match="must hold a checkpoint"):
        Evaluation(given, out)
    (tmp_path / "swapped").mkdir()
    (tmp_path / "swapped" / "s").symlink_to(checkpoints / "t")
    with pytest.raises(CheckpointError) as caught:
        Evaluation(dataclasses.replace(given, spaces=("s",), checkpoints=tmp_path / "swapped"), out)
    assert "space (s here, t in the checkpoint)" in str(caught.value)
    assert "columns (2 here, 3 in the checkpoint)" in str(caught.value)
    assert not out.exists()


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"seeds": ("test0", "test7")}, ConfigError, "test0, test1, test2, but got test7"),
        ({"spaces": ("untested",)}, DataError, "'untested' has no test tasks"),
        ({"spaces": ("u",)}, DataError, "unknown space 'u'"),
        ({"method": "randm"}, ConfigError, "did you mean random"),
        ({"split": "none"}, ConfigError, "split"),
    ],
)
def test_plans_that_cannot_be(plan, tmp_path, changed, error, message):
    with pytest.raises(error, match=message):
        Evaluation(dataclasses.replace(plan, **changed), tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []
