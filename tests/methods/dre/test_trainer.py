"""Meta-training from start to end, and from whatever end it came to."""

import dataclasses
import functools
import random
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, build_table
from dre_jax.data.columns import Column
from dre_jax.errors import CheckpointError, DataError, DataWarning
from dre_jax.methods.dre import MetaTrainConfig, ModelConfig, backends, meta_train, trainer
from dre_jax.methods.dre.backends.provenance import backend
from dre_jax.methods.dre.state import TrainingRun
from dre_jax.methods.dre.steps import evaluate, start, train
from dre_jax.methods.dre.training_checkpoint import ResumableTraining, TrainingCheckpoint
from dre_jax.methods.storage import provenance
from tests.error_messages import raises_line
from tests.methods.conftest import assert_same

MODEL = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
CONFIG = MetaTrainConfig(steps=10, evaluate_every=4, n_support=3, n_query=6, evaluation_lists=8)
PATIENT = dataclasses.replace(CONFIG, steps=20, evaluate_every=2, patience=3)
# Validation losses by step: a rise that is made good, a tie that is no gain, and a third evaluation without one at 12.
SCRIPT = {0: 5.0, 2: 4.0, 4: 4.5, 6: 3.0, 8: 3.5, 10: 3.0, 12: 3.2, 14: 1.0}


def make_space(seed=0):
    rng = np.random.default_rng(seed)

    def tasks(names):
        return {n: Task(n, rng.random((12, 2), dtype=np.float32), rng.random(12)) for n in names}

    # As many validation as training tasks: their tables are of one shape, and the loss is compiled once.
    columns = tuple(Column(f"c{i}", "float", f"c{i}") for i in range(2))
    return SearchSpace("s", tasks("abc"), tasks("uvw"), tasks("x"), columns=columns)


SPACE = make_space()
UNVALIDATED = dataclasses.replace(SPACE, validation={})
go = functools.partial(meta_train, SPACE, MODEL, CONFIG)


@pytest.fixture(scope="module", autouse=True)
def short_portions():
    """Two steps at a time, so that there are several portions between two evaluations, and one program for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "portion", lambda config: 2)
        yield


@pytest.fixture(scope="module")
def uninterrupted():
    return go(key=jax.random.key(0))


@pytest.fixture(scope="module")
def saved(tmp_path_factory, uninterrupted):
    folder = tmp_path_factory.mktemp("saved") / "s"
    trained = go(key=jax.random.key(0), folder=folder)
    assert_same(trained.params, uninterrupted.params)
    assert trained.history == uninterrupted.history
    return folder


def by_hand(config, n_steps):
    """Parameters after each evaluation interval, from the training step alone."""
    key, table = jax.random.key(0), build_table(SPACE.train)
    state = start(MODEL, config, SPACE.n_columns, key)
    yield jax.tree.map(jnp.copy, state.params)
    for step in range(2, n_steps + 1, 2):
        state, _ = train(MODEL, config, table, state, key, 2)
        if step % config.evaluate_every == 0:
            yield jax.tree.map(jnp.copy, state.params)


class Interrupted(Exception):
    pass


@pytest.mark.slow
def test_history_at_the_start_at_every_interval_and_at_the_end(uninterrupted):
    key = jax.random.key(0)
    assert [entry.step for entry in uninterrupted.history] == [0, 4, 8, 10]
    assert uninterrupted.step == 10
    assert uninterrupted.resumed_from is None
    tables = build_table(SPACE.train), build_table(SPACE.validation)
    for entry, params in zip(uninterrupted.history, by_hand(CONFIG, 8), strict=False):
        losses = [float(evaluate(MODEL, CONFIG, table, params, key)) for table in tables]
        assert list(entry[1:]) == losses
    assert uninterrupted.history[-1].train < uninterrupted.history[0].train


def test_reports_and_that_portions_do_not_matter(monkeypatch, uninterrupted):
    monkeypatch.setattr(trainer, "portion", lambda config: 3)  # no divisor of the interval
    calls = []
    again = go(key=jax.random.key(0), report=calls.append)
    assert [at.step for at in calls] == [2, 4, 6, 8, 10]
    assert all(at.steps == 10 and at.resumed_from is None and np.isfinite(at.loss) for at in calls)
    assert again.history == uninterrupted.history
    assert_same(again.params, uninterrupted.params)


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path, uninterrupted, left_by_kills):
    folder = tmp_path / "s"
    folder.mkdir()
    copies = left_by_kills(folder, lambda: go(key=jax.random.key(0), folder=folder))
    assert len(copies) > 50

    def files(folder):
        return sorted(str(path.relative_to(folder)) for path in [*folder.glob("*"), *folder.glob("steps/*")])

    for copy in [*random.Random(0).sample(copies[:-1], 4), copies[-1]]:  # the last was killed after its last step
        last = TrainingCheckpoint(copy).latest_step()
        calls = []
        resumed = go(key=jax.random.key(0), folder=copy, report=calls.append)
        assert {resumed.resumed_from, *(at.resumed_from for at in calls)} == {last}
        assert_same(resumed.params, uninterrupted.params)
        assert TrainingCheckpoint(copy).metadata() == TrainingCheckpoint(folder).metadata()
        assert (copy / "losses.csv").read_text() == (folder / "losses.csv").read_text()
        assert files(copy) == files(folder)  # nothing half-written is left


@pytest.fixture(scope="module")
def trajectory():
    """Parameters at every evaluation of the patient training, by step."""
    return {2 * i: params for i, params in enumerate(by_hand(PATIENT, max(SCRIPT)))}


@pytest.fixture
def scripted(monkeypatch, trajectory):
    """Validation losses as SCRIPT has them, training losses that always fall."""

    def history_and_candidates(model, config, table, params, key):
        step = next(step for step, params_then in trajectory.items() if same(params_then, params))
        on_validation = bool((table.x == build_table(SPACE.validation).x).all())
        return SCRIPT[step] if on_validation else 10.0 - step

    def same(ours, theirs):
        return all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), ours, theirs)))

    monkeypatch.setattr(trainer, "evaluate", history_and_candidates)


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(
    "interrupted_at", [None, *(pytest.param(step, marks=pytest.mark.thorough) for step in (6, 12))]
)
@pytest.mark.slow
def test_patience_stops_and_keeps_the_best(tmp_path, trajectory, interrupted_at):
    patient = functools.partial(meta_train, SPACE, MODEL, PATIENT, key=jax.random.key(0), folder=tmp_path)
    if interrupted_at is not None:

        def interrupt(progress):
            if progress.step == interrupted_at:
                raise Interrupted

        with pytest.raises(Interrupted):
            patient(report=interrupt)
    trained = patient()
    assert trained.step == 12
    assert trained.history == [(step, 10.0 - step, loss) for step, loss in SCRIPT.items() if step <= 12]
    assert_same(trained.params, trajectory[6])
    assert_same(TrainingCheckpoint(tmp_path).load().params, trajectory[6])
    assert_same(TrainingCheckpoint(tmp_path).load().state.params, trajectory[12])
    assert TrainingCheckpoint(tmp_path).metadata()["best_step"] == 6
    calls = []
    assert_same(patient(report=calls.append).params, trajectory[6])
    assert calls == []


def test_another_training_is_refused_with_the_differences(tmp_path, saved):
    """The folder stays; test_meta_training.py tests more differences."""
    key, cosine = jax.random.key(0), dataclasses.replace(CONFIG, schedule="cosine")
    columns = (SPACE.columns[0], Column("c1", "float", "c1", log=True))
    ResumableTraining(tmp_path, SPACE, MODEL, cosine, key).save(TrainingRun(start(MODEL, cosine, 2, key)))
    for folder, space, config, difference in (
        (saved, SPACE, dataclasses.replace(CONFIG, steps=6), "training.steps (6 here, 10 in the checkpoint)"),
        (saved, dataclasses.replace(SPACE, columns=columns), CONFIG, "c1 (log float here, float in the checkpoint)"),
        (tmp_path, SPACE, dataclasses.replace(cosine, steps=14), "training.steps (14 here, 10 in the checkpoint)"),
    ):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        with raises_line(CheckpointError, str(folder), difference):
            meta_train(space, MODEL, config, key=key, folder=folder)
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_needs_tasks(tmp_path):
    with pytest.raises(DataError, match="'s' has none"):
        meta_train(SearchSpace("s", test=SPACE.test), MODEL, CONFIG, key=jax.random.key(0), folder=tmp_path / "a")
    with pytest.raises(DataError, match="patience needs validation tasks"):
        meta_train(UNVALIDATED, MODEL, PATIENT, key=jax.random.key(0), folder=tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_backends_are_recorded_and_another_gives_a_warning(saved, tmp_path, monkeypatch):
    folder, other = shutil.copytree(saved, tmp_path / "s"), {"steps": "native 1a2b", "device": "H200"}
    mine = backend()
    assert TrainingCheckpoint(folder).metadata()["facts"]["backends"] == [mine]
    for module in (provenance, backends.provenance):
        monkeypatch.setattr(module, "backend", lambda **_: other)
    go(key=jax.random.key(0), folder=folder)  # nothing is left to do
    with pytest.warns(DataWarning, match=r"on cpu, .* native 1a2b on H200") as facts:
        meta_train(SPACE, MODEL, dataclasses.replace(CONFIG, steps=14), key=jax.random.key(0), folder=folder)
    assert len(facts) == 1
    assert TrainingCheckpoint(folder).metadata()["facts"]["backends"] == [mine, other]
