"""HPO-B's shape in small: 16 search spaces, 86 tasks, 430 runs, in one command."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.benchmark import Evaluation, Plan, evaluation, run_hpob
from dre_jax.data import SearchSpace, Task, load_space, read_results, write_dataset
from dre_jax.errors import CheckpointError, DataError
from dre_jax.methods import DRE, METHODS
from dre_jax.model import ModelConfig
from dre_jax.training import FineTuneConfig, MetaTrainConfig
from dre_jax.training.checkpoint import Checkpoint, describe
from dre_jax.training.steps import start

# HPO-B's search spaces: columns and number of test tasks.
SHAPE = {
    "4796": (3, 4), "5527": (8, 6), "5636": (6, 6), "5859": (6, 6), "5860": (2, 3), "5891": (8, 6), "5906": (16, 2),
    "5965": (10, 7), "5970": (2, 6), "5971": (16, 6), "6766": (2, 6), "6767": (18, 6), "6794": (10, 6), "7607": (9, 7),
    "7609": (9, 7), "5889": (6, 2),
}  # fmt: skip
SEEDS = tuple(f"test{number}" for number in range(5))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)

    def tasks(columns, names):
        return {n: Task(n, rng.random((24, columns), dtype=np.float32), rng.random(24)) for n in names}

    def space(name, columns, count):
        test = tasks(columns, [f"{name}-{number}" for number in range(count)])
        designs = {dataset: {seed: rng.permutation(24)[:5] for seed in SEEDS} for dataset in test}
        return SearchSpace(name, train=tasks(columns, ["a", "b"]), test=test, designs=designs)

    folder = tmp_path_factory.mktemp("hpob-data")
    write_dataset(folder, [space(name, *shape) for name, shape in SHAPE.items()])
    return folder


def content(path):
    found = json.loads(path.read_text())
    found["_meta"].pop("versions")
    return found


CHILD = """
import sys
from dre_jax.cli import main
main(["evaluate", "--data", sys.argv[1], "--method", "random", "--trials", "3", "--out", sys.argv[2], "--quiet"])
"""


@pytest.mark.thorough
@pytest.mark.multiprocess
@pytest.mark.slow
def test_all_of_it_killed_in_the_middle(data, tmp_path):
    whole, out = tmp_path / "whole.json", tmp_path / "out.json"
    # The three processes share what they compile.
    cache = {"DRE_JAX_CACHE": str(tmp_path / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    environment = {**os.environ, **cache, "JAX_NUM_CPU_DEVICES": "1"}

    def command(path):
        return [sys.executable, "-c", CHILD, str(data), str(path)]

    done = subprocess.run(command(whole), env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("random: 430 runs, mean regret ")
    results = read_results(whole)
    assert len(list(results.runs())) == 430
    assert list(results.traces) == list(SHAPE)
    with subprocess.Popen(command(out), env=environment) as process:
        while not out.exists() or out.stat().st_size < whole.stat().st_size / 3:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert 3 < len(read_results(out).traces) < 16
    again = subprocess.run(command(out), env=environment, capture_output=True, text=True, timeout=400)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split(" trials")[0] == done.stdout.split(" trials")[0]
    assert content(out) == content(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "out.json", "whole.json"]


@dataclass(frozen=True)
class Fits:
    """Looks at what it is fitted on."""

    def fit(self, meta, key):
        SEEN.append((meta.name, list(meta.train), list(meta.test)))

    def acquire(self, params, history, candidates, key):
        return jnp.zeros(candidates.where.shape, jnp.float32)


SEEN = []


def test_a_space_is_loaded_when_its_turn_comes_and_then_let_go(data, tmp_path, monkeypatch):
    alive = []

    def load(*arguments, **options):
        import gc
        import weakref

        gc.collect()
        loaded.append((arguments[1], options["splits"], sum(ref() is not None for ref in alive)))
        space = load_space(*arguments, **options)
        alive.append(weakref.ref(space))
        return space

    loaded = []
    monkeypatch.setattr(evaluation, "load_space", load)
    names = ("5860", "4796", "5970")
    for run in Evaluation(Plan(data=data, method="random", spaces=names, trials=1), tmp_path / "a.json"):
        assert loaded[-1][0] == run.space
    # No other space is alive when one is loaded, and of each only the split that is evaluated is read.
    assert loaded == [(name, ["test"], 0) for name in names]
    loaded.clear()
    SEEN.clear()
    list(Evaluation(Plan(data=data, method=Fits(), spaces=names, trials=1), tmp_path / "b.json"))
    assert loaded == [(name, ["test", "train"], 0) for name in names]
    assert [(name, train) for name, train, _ in SEEN] == [(name, ["a", "b"]) for name in names]
    assert content(tmp_path / "b.json")["_meta"]["method"] == "Fits"
    # What is in the file already is not loaded again.
    loaded.clear()
    list(Evaluation(Plan(data=data, method="random", spaces=(*names, "5906"), trials=1), tmp_path / "a.json"))
    assert [name for name, *_ in loaded] == ["5906"]


def test_what_is_wrong_is_said_before_the_first_run(data, tmp_path):
    with pytest.raises(DataError, match="unknown space '1'"):
        run_hpob("random", data, tmp_path / "a.json", spaces=["5860", "1"])
    (tmp_path / "copy").mkdir()
    for path in data.iterdir():
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    designs = json.loads((data / "bo-initializations.json").read_text())
    designs["5889"].pop("5889-1")
    (tmp_path / "copy" / "bo-initializations.json").write_text(json.dumps(designs))
    with pytest.raises(DataError, match="space '5889', dataset '5889-1': an initial design is needed"):
        run_hpob("random", tmp_path / "copy", tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


MODEL = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))


def save(root, data, name, step=0):
    space = load_space(data, name)
    config, key = MetaTrainConfig(), jax.random.key(0)
    facts = describe(
        space=name, n_columns=space.n_columns, model=MODEL, config=config, key=key, fingerprint=f"of {name}"
    )
    state = start(MODEL, config, space.n_columns, key)._replace(step=jnp.int32(step))
    Checkpoint(root / name).save(state, None, {**facts, "history": [], "best_step": None, "versions": {}})


@pytest.fixture(scope="module")
def checkpoints(data, tmp_path_factory):
    root = tmp_path_factory.mktemp("checkpoints")
    for name in ("5860", "4796"):
        save(root, data, name)
    return root


def test_checkpoints_are_described_once_and_need_no_training_data(data, tmp_path, checkpoints, monkeypatch):
    (tmp_path / "data").mkdir()
    for name in ("meta-test-dataset", "bo-initializations"):
        (tmp_path / "data" / f"{name}.json").write_bytes((data / f"{name}.json").read_bytes())
    described = []
    real = Checkpoint.metadata
    monkeypatch.setattr(Checkpoint, "metadata", lambda self: described.append(self.folder.name) or real(self))
    plan = Plan(
        data=tmp_path / "data", method="dre-no-finetune", spaces=("5860", "4796"), trials=1, checkpoints=checkpoints
    )
    found = Evaluation(plan, tmp_path / "a.json")
    assert described == ["5860", "4796"]
    assert len(list(found)) == found.total == 35
    # Loading reads the description that lies beside the arrays: it must be the one that the file tells of.
    assert described == ["5860", "4796"] * 2


def test_a_method_as_an_object(data, tmp_path, checkpoints):
    """A DRE of one's own takes weights and sizes from the checkpoint, everything else from the object."""
    method = DRE(fine_tuning=FineTuneConfig(epochs=0))
    out = tmp_path / "object.json"
    by_object = run_hpob(method, data, out, spaces=["5860"], trials=2, seeds=["test0"], checkpoints=checkpoints)
    by_name = run_hpob(
        "dre-no-finetune", data, tmp_path / "name.json", spaces=["5860"], trials=2, seeds=["test0"],
        checkpoints=checkpoints,
    )  # fmt: skip
    assert by_object.meta["method"] == "DRE"
    assert by_object.meta["configuration"] == by_name.meta["configuration"]
    assert by_object.meta["configuration"]["model"]["members"] == MODEL.members
    assert METHODS["dre-no-finetune"].reads_checkpoints
    for (*_, ours), (*_, theirs) in zip(by_object.runs(), by_name.runs(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_spaces_are_added_to_a_file_with_their_checkpoints(data, tmp_path, checkpoints):
    both, out = tmp_path / "both.json", tmp_path / "out.json"
    options = {"trials": 1, "seeds": ["test0"], "checkpoints": checkpoints}
    run_hpob("dre-no-finetune", data, both, spaces=["5860", "4796"], **options)
    for spaces in (["5860"], ["4796"], ["5860"]):
        run_hpob("dre-no-finetune", data, out, spaces=spaces, **options)
    assert content(out) == content(both)


def test_a_checkpoint_that_changes_under_way(data, tmp_path, checkpoints):
    for name in ("5860", "4796"):
        save(tmp_path / "moving", data, name)
    plan = Plan(data=data, method="dre-no-finetune", spaces=("5860", "4796"), trials=1, checkpoints=tmp_path / "moving")
    runs = iter(Evaluation(plan, tmp_path / "a.json"))
    next(runs)
    save(tmp_path / "moving", data, "4796", step=5)
    with pytest.raises(CheckpointError, match=r"4796 has changed \(step 5, was 0\)"):
        list(runs)
    assert set(read_results(tmp_path / "a.json").traces) == {"5860"}


def test_the_summary_states_the_memory(data, tmp_path):
    found = Evaluation(Plan(data=data, method="random", spaces=("5860",), trials=1), tmp_path / "a.json")
    list(found)
    told = found.summary()
    peak = float(told.rsplit("peak memory ", 1)[1].removesuffix(" MB").replace(",", ""))
    resource = pytest.importorskip("resource")
    unit = 1e6 if sys.platform == "darwin" else 1e3
    assert peak == pytest.approx(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, rel=0.2)
