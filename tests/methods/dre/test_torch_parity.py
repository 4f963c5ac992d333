"""The library against PyTorch without PyTorch: what `benchmarks.peers.torch_golden` made of fixed weights and lists."""

import contextlib
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data.tasks import TaskTable
from dre_jax.losses import LOSSES, rank_sorted
from dre_jax.methods.dre import EnsembleParams, ModelConfig, Support, fine_tune, scores
from dre_jax.methods.dre.backends.reference.request import SampledLists
from dre_jax.methods.dre.backends.reference.scan import take_steps as scan_steps
from dre_jax.methods.dre.training_config import PAPER_LOSS, FineTuneConfig, MetaTrainConfig
from dre_jax.optim.adam import StepSizes, step_sizes, zero_moments
from dre_jax.search import AcquisitionConfig, acquire_by_rank, mean_and_deviation, mean_tie_ranks

GOLDEN = json.loads((Path(__file__).parent / "torch_parity.json").read_text())
CONTEXTS = sorted(GOLDEN["cases"])
EVERY = [pytest.param(n, marks=[pytest.mark.thorough] * (n != "own")) for n in CONTEXTS]
N, CAPACITY = GOLDEN["n_history"], 16
TASK_ROWS = GOLDEN["task_rows"]


def model_of(context):
    sizes = {name: tuple(value) if isinstance(value, list) else value for name, value in GOLDEN["sizes"].items()}
    return ModelConfig(context=context, **sizes)


def tree(stored, dtype=np.float32):
    """A stored tree of parameters or gradients."""
    parts = (
        None if part is None else {name: jnp.asarray(np.array(leaf), dtype) for name, leaf in part.items()}
        for part in (stored["scorers"], stored["deep_set"])
    )
    return EnsembleParams(*parts)


def make_table(dtype=np.float32):
    raw = GOLDEN["table"]
    n_tasks = len(raw["level"]) // TASK_ROWS
    return TaskTable(
        x=np.array(raw["x"], dtype),
        response=np.array(raw["response"], dtype),
        level=np.array(raw["level"], np.int32),
        start=np.arange(n_tasks, dtype=np.int32) * TASK_ROWS,
        size=np.full(n_tasks, TASK_ROWS, np.int32),
        n_tasks=np.int32(n_tasks),
    )


@contextlib.contextmanager
def in_float64():
    """The same code on float64 inputs, a few float32 constants among them.

    Many steps are compared so. ListMLE does not see a shift of all scores: the last bias has no gradient, nor has that
    of a unit which is active throughout. In float32 theirs is rounding, which Adam makes into steps of its full size,
    in PyTorch as well as here; in float64 it is less than Adam's epsilon.
    """
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        yield


def assert_gradients_close(ours, theirs):
    """To 1e-5 of the whole gradient's length: some leaves are sums that cancel, the last bias to nothing at all."""
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    length = np.sqrt(sum(np.square(leaf, dtype=np.float64).sum() for leaf in jax.tree.leaves(theirs)))
    for (path, one), other in zip(jax.tree.leaves_with_path(ours), jax.tree.leaves(theirs), strict=True):
        assert one.dtype == np.float32
        error = np.linalg.norm(np.asarray(one, np.float64) - other) / length
        assert error < 1e-5, f"{jax.tree_util.keystr(path)}: {error}"


def assert_parameters_close(ours, theirs, start):
    """Each leaf to a millionth of its length, far closer than to where it started."""
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    leaves = (jax.tree.leaves(tree) for tree in (theirs, start))
    moved = []
    for (path, one), other, start_time in zip(jax.tree.leaves_with_path(ours), *leaves, strict=True):
        assert one.dtype == np.float64
        error = np.linalg.norm(one - other) / np.linalg.norm(other)
        assert error < 1e-6, f"{jax.tree_util.keystr(path)}: {error}"
        moved.append(float(np.abs(other - start_time).max()))
    assert np.median(moved) > 0.01, "what is compared is the start"


def read_lists(table, rows, config):
    """Stored lists [..., (support, query)] as the library draws them: empty slots hold a row and are masked."""
    support, query = (np.array(part, np.int32) for part in rows)
    safe, where = np.maximum(query, 0), query >= 0
    ranked = ranked_of(np.asarray(table.response)[safe], np.asarray(table.level)[safe], where, config.loss.weights)
    return SampledLists(np.maximum(support, 0), support >= 0, safe, ranked)


train = jax.jit(scan_steps, static_argnums=(0, 1))
ranked_of = jax.jit(rank_sorted, static_argnums=3)
nothing_yet = jax.jit(zero_moments)


@pytest.mark.parametrize("context", EVERY)
@pytest.mark.slow
def test_meta_training(context):
    model, case = model_of(context), GOLDEN["cases"][context]
    config = MetaTrainConfig(learning_rate=GOLDEN["rates"]["meta"], loss=PAPER_LOSS)
    n_steps, drawn = len(case["meta"]["losses"]), case["meta"]["lists"]
    stored = [[[[one[part] for one in own] for own in step] for step in drawn] for part in (0, 1)]

    def go(dtype, *, still=False):
        table, start = make_table(dtype), tree(case["start"], dtype)
        lists = read_lists(table, stored, config)
        sizes = step_sizes(config.learning_rates(), jnp.arange(n_steps))
        if still:  # steps of no size over the first lists alone: Adam's first moment approaches their gradient
            lists = jax.tree.map(lambda a: np.broadcast_to(np.asarray(a)[:1], a.shape), lists)
            sizes = StepSizes(sizes.size * 0.0, sizes.floor + 1.0)
        begin = start, nothing_yet(start)
        (params, moments), losses = train(model, "listmle", table.x, table.response, begin, lists, sizes)
        return params, moments, np.asarray(losses).sum(axis=1)

    params, moments, losses = go(np.float32, still=True)
    jax.tree.map(np.testing.assert_array_equal, params, tree(case["start"]))
    np.testing.assert_allclose(losses, case["meta"]["losses"][0], rtol=1e-5)
    gradient = jax.tree.map(lambda m: np.asarray(m) / np.float32(1.0 - 0.9**n_steps), moments.first)
    assert_gradients_close(gradient, tree(case["meta"]["gradient"]))
    np.testing.assert_allclose(go(np.float32)[2], case["meta"]["losses"], rtol=1e-4)
    with in_float64():
        params, _, losses = go(np.float64)
        np.testing.assert_allclose(losses, case["meta"]["losses"], rtol=1e-6)
        after, start = (tree(stored, np.float64) for stored in (case["meta"]["after"], case["start"]))
        assert_parameters_close(params, after, start)


def follow_tuning(model, case, monkeypatch):
    """Parameters after the stored epochs, by the library's own `fine_tune`, in float64."""
    table = make_table(np.float64)
    support, query = (np.array([epoch[part] for epoch in case["fine"]["epochs"]]) for part in (0, 1))
    config = FineTuneConfig(epochs=len(query), learning_rate=GOLDEN["rates"]["fine"], loss=PAPER_LOSS)
    empty = np.full((len(query), 1), -1)  # the history has more room than trials: padding must not matter
    rows = np.concatenate([support, empty], axis=1), np.concatenate([query, empty, empty], axis=1)
    epochs = read_lists(table, rows, config)
    monkeypatch.setattr(sys.modules[fine_tune.__module__], "draw_epochs", lambda *_: epochs)
    filled = np.arange(CAPACITY) < N
    past = (np.where(filled[:, None], table.x[:CAPACITY], 0.5), table.response[:CAPACITY], table.level[:CAPACITY])
    history = [jnp.asarray(a) for a in past]
    tuned = jax.jit(lambda params: fine_tune(model, config, params, *history, filled, jax.random.key(0)))
    return tuned(tree(case["start"], np.float64))


@pytest.mark.parametrize("context", EVERY)
def test_fine_tuning(context, monkeypatch):
    model, stored, start = model_of(context), GOLDEN["cases"][context]["fine"], GOLDEN["cases"][context]["start"]
    first = tuple(jnp.asarray(rows) for rows in stored["epochs"][0])
    loss_and_gradient = jax.jit(jax.value_and_grad(tuning_loss), static_argnums=1)
    loss, gradient = loss_and_gradient(tree(start), model, make_table(), first)
    np.testing.assert_allclose(loss, stored["losses"][0], rtol=1e-5)
    assert_gradients_close(gradient, tree(stored["gradient"]))
    with in_float64():
        params = follow_tuning(model, GOLDEN["cases"][context], monkeypatch)
        assert_parameters_close(params, tree(stored["after"], np.float64), tree(start, np.float64))


def tuning_loss(params, model, table, epoch):
    """The sum over members of an epoch's loss."""
    support, query = epoch
    context = Support(table.x[support], table.response[support], jnp.ones(support.shape, bool))
    values = scores(model, params, context, table.x[query])
    ranked = rank_sorted(table.response[query], table.level[query], jnp.ones(query.shape, bool))
    ranked = jax.tree.map(lambda a: jnp.broadcast_to(a, values.shape), ranked)
    return LOSSES["listmle"].fn(values, ranked).sum()


@pytest.mark.parametrize("context", EVERY)
def test_scores_ranks_and_improvement(context):
    table, model, case = make_table(), model_of(context), GOLDEN["cases"][context]
    expected = {name: np.array(value) for name, value in case["suggestion"].items()}
    filled = np.arange(CAPACITY) < N
    empty = np.float32(0.5)
    support = Support(np.where(filled[:, None], table.x[:CAPACITY], empty), table.response[:CAPACITY], filled)
    everyone = np.concatenate([table.x[N:TASK_ROWS], table.x[:1]])
    values = jax.jit(scores, static_argnums=0)(model, tree(case["fine"]["after"]), support, everyone)
    np.testing.assert_allclose(values, expected["scores"], rtol=1e-5, atol=1e-5)
    values = np.asarray(values)
    mean, deviation = jax.jit(lambda a: mean_and_deviation(mean_tie_ranks(a, np.ones(a.shape, bool))))(values)
    np.testing.assert_allclose(mean, expected["mean_rank"], rtol=1e-6)
    np.testing.assert_allclose(deviation, expected["deviation"], atol=1e-6)
    where, candidates = np.ones(len(mean) - 1, bool), values[:, :-1]
    acquire = jax.jit(acquire_by_rank, static_argnums=0)
    acquired = acquire(AcquisitionConfig(kind="ei"), candidates, where, values[:, -1], np.bool_(True))
    # Where the members agree, the deviation is the floor of 1e-9 and the logarithm about -1e18: relative, then.
    np.testing.assert_allclose(acquired, expected["log_improvement"], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(np.argsort(acquired)[-1], np.argsort(expected["log_improvement"])[-1])
