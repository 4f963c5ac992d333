# ruff: noqa: E402
"""The library against the PyTorch reference: same weights and lists, same losses, gradients, parameters and picks."""

import contextlib
import copy
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="torch is not installed")

from benchmarks.torch_reference import (
    LIBRARY,
    REFERENCE,
    Batch,
    Ensemble,
    Table,
    adam,
    draw_lists,
    fine_tune,
    listmle,
    meta_train,
    sort_batch,
    tensors,
    total_loss,
    train_step,
)
from benchmarks.torch_search import expected_improvement, optimise, rank, suggest
from benchmarks.torch_weights import from_torch, host_tree, to_torch
from dre_jax.data import Task, build_table, bundled
from dre_jax.losses import RANKED_LOSSES
from dre_jax.model import ModelConfig, Support, init, mean_tie_ranks, preset, scores
from dre_jax.search.acquisition import log_expected_improvement
from dre_jax.training import FineTuneConfig, MetaTrainConfig
from dre_jax.training import fine_tune as library_fine_tune
from dre_jax.training.adam import StepSizes, step_sizes, zero_moments
from dre_jax.training.config import PAPER_LOSS
from dre_jax.training.fine_tune import draw_epochs
from dre_jax.training.lists import draw_lists as library_draw_lists
from dre_jax.training.steps import _scan_steps

STEPS, RATE = 50, 1e-3
KEY = jax.random.key(3)
SMALL = ModelConfig(members=3, hidden=(8, 8), phi=(8,), rho=(8, 4), initialiser="torch_uniform")
# The paper's own sizes once; the two other contexts smaller.
MODELS = {"shared": preset("paper"), "own": SMALL, "none": replace(SMALL, context="none")}


@pytest.fixture(scope="module")
def tasks():
    return bundled.load("svm").train


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def global_error(ours, theirs):
    """Largest difference of a leaf, as a share of the length of the whole tree: some leaves cancel to nothing."""
    pairs = list(zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True))
    length = np.sqrt(sum(np.square(np.asarray(other, np.float64)).sum() for _, other in pairs))
    return max(np.linalg.norm(np.asarray(one, np.float64) - other) for one, other in pairs) / length


def assert_same_parameters(ours, theirs, begun):
    """Each leaf to a millionth of its length, in float64 (see `in_float64` of tests/training/test_torch_parity)."""
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    moved = []
    for one, other, first in zip(*(jax.tree.leaves(tree) for tree in (ours, theirs, begun)), strict=True):
        assert one.dtype == np.float64
        assert np.linalg.norm(one - other) < 1e-6 * np.linalg.norm(other)
        moved.append(np.abs(other - first).max())
    assert np.median(moved) > 0.01, "what is compared is the start"


@contextlib.contextmanager
def in_float64():
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        yield


def double(tree):
    """Floats as float64, inside `in_float64`."""
    return jax.tree.map(lambda a: jnp.asarray(np.asarray(a, np.float64)) if a.dtype == np.float32 else a, tree)


def read(table, support, support_where, query, query_where, dtype):
    """Rows of a library's table [B, k] and [B, n] as a batch."""
    x, response, level = (np.asarray(a) for a in (table.x, table.response, table.level))
    support, query = np.asarray(support), np.asarray(query)
    fields = x[support], response[support], x[query], level[query].astype(np.int64)
    made = [torch.tensor(a) if a.dtype == np.int64 else torch.tensor(a, dtype=dtype) for a in fields]
    return Batch(*made, *(torch.tensor(np.asarray(a)) for a in (support_where, query_where)))


def follow(model, params, steps, dtype=torch.float64):
    """The first loss and gradient, and the parameters after all steps, by PyTorch."""
    ensemble = to_torch(model, params, LIBRARY.response_scale, dtype)
    first = copy.deepcopy(ensemble)
    loss = total_loss(first, steps[0], LIBRARY)
    loss.backward()
    optimiser = adam(ensemble, RATE)
    losses = [float(train_step(ensemble, optimiser, batches, LIBRARY)) for batches in steps]
    assert losses[0] == pytest.approx(loss.item())
    return np.array(losses), host_tree(model, first, gradient=True), host_tree(model, ensemble)


@pytest.mark.parametrize("context", MODELS)
def test_meta_training(context, tasks):
    model, n_steps = MODELS[context], STEPS
    # Some lists are short: a task of 40 rows lies among those of 200 and more.
    name, task = next(iter(tasks.items()))
    some = dict(list(tasks.items())[:5]) | {name: Task(name, task.X[:40], task.y[:40])}
    table = build_table(some)
    config = MetaTrainConfig(learning_rate=RATE, lists_per_step=2, n_support=8, n_query=60, loss=PAPER_LOSS)
    params = init(model, table.n_columns, KEY)
    shape = (model.members, config.lists_per_step)
    keys = jax.vmap(lambda step: jax.random.fold_in(KEY, step))(jnp.arange(n_steps))
    lists = jax.jit(jax.vmap(lambda key: library_draw_lists(table, key, shape, config)))(keys)
    rows = [np.asarray(a) for a in (lists.support, lists.support_where, lists.query, lists.ranked.where)]
    assert not rows[3].all()

    def batches(step, dtype):
        return [read(table, *(a[step, member] for a in rows), dtype) for member in range(model.members)]

    exact = [batches(step, torch.float64) for step in range(n_steps)]
    losses, gradient, after = follow(model, params, exact)
    single = to_torch(model, params, LIBRARY.response_scale)
    total_loss(single, batches(0, torch.float32), LIBRARY).backward()

    def first_loss(params):
        def score(one):
            return scores(model, params, one.read_support(table), table.x[one.query])

        first = jax.tree.map(lambda a: a[0], lists)
        everyone = jax.vmap(jax.vmap(score))(first)  # [lists' member, list, scoring member, n]
        own = jnp.stack([everyone[m, :, m] for m in range(model.members)])
        return RANKED_LOSSES["listmle"](own, first.ranked).mean(axis=1).sum()

    ours_first, ours_gradient = jax.jit(jax.value_and_grad(first_loss))(params)
    np.testing.assert_allclose(ours_first, losses[0], rtol=1e-5)
    assert global_error(ours_gradient, gradient) < 1e-5
    assert global_error(host_tree(model, single, gradient=True), gradient) < 1e-5
    with in_float64():
        weights = [[sort_batch(one, LIBRARY).weight.numpy() for one in batches] for batches in exact]
        np.testing.assert_allclose(lists.ranked.weight, weights, rtol=1e-5)
        # The library's weights and step sizes have float32's digits. ReLU's kinks make much of a last digit in time.
        lists = lists._replace(ranked=lists.ranked._replace(weight=jnp.asarray(weights)))
        power = np.arange(1.0, n_steps + 1)
        floor = 1e-8 * np.sqrt(1.0 - 0.999**power)
        sizes = StepSizes(RATE * floor / 1e-8 / (1.0 - 0.9**power), floor)
        for size, rounded in zip(sizes, step_sizes(config.learning_rates(), jnp.arange(n_steps)), strict=True):
            np.testing.assert_allclose(rounded, size, rtol=1e-5)
        state = double(params), zero_moments(double(params))
        (found, _), ours = train(model, config, double(table), state, lists, StepSizes(*map(jnp.asarray, sizes)))
        np.testing.assert_allclose(ours.sum(axis=1), losses, rtol=1e-6)
        assert_same_parameters(found, after, params)


train = jax.jit(_scan_steps, static_argnums=(0, 1))


@pytest.mark.parametrize("context", MODELS)
def test_fine_tuning(context, tasks, monkeypatch):
    model, n_filled, capacity = MODELS[context], 13, 16
    name, task = next(iter(tasks.items()))
    table = build_table({name: Task(name, task.X, task.y.round(1))})
    rows = np.sort(np.random.default_rng(1).permutation(len(table.level))[:n_filled])
    padded = jnp.asarray(np.pad(rows, (0, capacity - n_filled)))
    filled = jnp.arange(capacity) < n_filled
    x, response, level = table.x[padded], table.response[padded], table.level[padded]
    assert len(set(level[:n_filled].tolist())) < n_filled, "no ties"
    config = FineTuneConfig(epochs=STEPS, learning_rate=RATE, loss=PAPER_LOSS)
    params = init(model, table.n_columns, jax.random.key(1))
    epochs = draw_epochs(config, response, level, filled, KEY)
    sorted_history = table._replace(x=x, response=response, level=level)
    parts = [np.asarray(a) for a in (epochs.support, epochs.support_where, epochs.query, epochs.ranked.where)]
    steps = [[read(sorted_history, *(a[e][None] for a in parts), torch.float64)] for e in range(STEPS)]
    _, _, after = follow(model, params, steps)
    monkeypatch.setattr(sys.modules[library_fine_tune.__module__], "draw_epochs", lambda *_: epochs)
    with in_float64():
        history = (*double((x, response)), level, filled)
        tune = jax.jit(lambda params: library_fine_tune(model, config, params, *history, KEY))
        assert_same_parameters(tune(double(params)), after, params)


@pytest.mark.parametrize("context", MODELS)
@pytest.mark.parametrize("scale", ["support", "table"])
def test_scores_with_a_masked_support(context, scale):
    model = replace(MODELS[context], response_scale=scale)
    params = init(model, 5, KEY)
    rng = np.random.default_rng(0)
    x, sx = rng.random((30, 5), np.float32), rng.random((7, 5), np.float32)
    sy, where = rng.random(7, np.float32) * 3 - 1, np.array([1, 1, 0, 1, 1, 0, 1], bool)
    support = Support(*(jnp.asarray(a) for a in (sx, sy, where)))
    ours = np.asarray(jax.jit(scores, static_argnums=0)(model, params, support, jnp.asarray(x)))
    ensemble = to_torch(model, params, scale)
    tx, tsx, tsy, twhere = (torch.tensor(a)[None] for a in (x, sx, sy, where))
    with torch.no_grad():
        masked = ensemble([Batch(tsx, tsy, tx, torch.zeros(1, 0), twhere)])
        dropped = ensemble([Batch(tsx[:, where], tsy[:, where], tx, torch.zeros(1, 0))])
    np.testing.assert_allclose(ours, torch.cat(masked), atol=1e-5)
    np.testing.assert_allclose(ours, torch.cat(dropped), atol=1e-5)
    order = np.argsort(-ours, axis=1)
    ranks = mean_tie_ranks(jnp.asarray(ours), jnp.ones(ours.shape, bool))
    np.testing.assert_array_equal(rank(torch.cat(masked).numpy()), ranks)
    assert len({tuple(row) for row in order.tolist()}) == model.members, "members agree: nothing is compared"


@pytest.mark.parametrize("context", MODELS)
def test_weights_there_and_back(context):
    model = MODELS[context]
    torch.manual_seed(0)
    ensemble = Ensemble(model, 6, "support")
    tree = from_torch(model, ensemble)
    drawn = init(model, 6, KEY)
    assert jax.tree.map(jnp.shape, tree) == jax.tree.map(jnp.shape, drawn)
    again = to_torch(model, tree, "support")
    for (name, one), (_, other) in zip(ensemble.named_parameters(), again.named_parameters(), strict=True):
        assert torch.equal(one, other), name


def slow_listmle(scores, epsilon):
    """Weighted ListMLE of one list in the order given, in float64 and by the definition."""
    total, top = 0.0, scores.max()
    for i in range(len(scores)):
        behind = np.exp(scores[i:] - top).sum() + epsilon
        total += (np.log(behind) - (scores[i] - top)) / np.log(i + 2)
    return total


def test_the_published_loss_has_an_epsilon_and_shuffles_ties():
    values, levels = np.array([1.0, 0.5, -40.0, 0.2]), np.array([0, 1, 2, 1])
    batch = Batch(torch.zeros(1, 0, 1), torch.zeros(1, 0), torch.zeros(1, 4, 1).double(), torch.tensor(levels)[None])
    generator = torch.Generator().manual_seed(0)
    found = {}
    for _ in range(40):
        order = sort_batch(batch, REFERENCE, generator)
        loss = float(listmle(torch.tensor(values)[None], order, REFERENCE.epsilon))
        found[tuple(order.order[0].tolist())] = loss
    assert set(found) == {(0, 1, 3, 2), (0, 3, 1, 2)}
    for order, loss in found.items():
        assert loss == pytest.approx(slow_listmle(values[list(order)], 1e-10))
    # The last item alone costs nothing, but the epsilon beside exp(-41) makes it cost 18.
    exact = {order: slow_listmle(values[list(order)], 0.0) for order in found}
    assert all(found[order] - exact[order] > 10 for order in found)
    ours = float(listmle(torch.tensor(values)[None], sort_batch(batch, LIBRARY), None))
    assert min(exact.values()) < ours < max(exact.values()) + 1.0


def test_shuffled_and_shared_ties_agree_without_ties():
    rng = np.random.default_rng(2)
    values = torch.tensor(rng.normal(size=(3, 9)))
    level = torch.tensor(rng.permuted(np.tile(np.arange(9), (3, 1)), axis=1))
    batch = Batch(torch.zeros(3, 0, 1), torch.zeros(3, 0), torch.zeros(3, 9, 1).double(), level)
    losses = [listmle(values, sort_batch(batch, decisions), None) for decisions in (REFERENCE, LIBRARY)]
    torch.testing.assert_close(*losses)
    order = level.argsort(dim=-1)
    slow = [slow_listmle(v[o].numpy(), 0.0) for v, o in zip(values, order, strict=True)]
    np.testing.assert_allclose(losses[0], slow)


def test_improvement_agrees_with_the_library():
    values = np.random.default_rng(0).normal(size=(10, 60))
    values[:, 5] = values[:, 6]  # ties
    values[:, 7] = 100.0  # all members agree
    values[:, -1] = 50.0 + np.arange(10) * 0.1  # the incumbent
    ranks = rank(values)
    mean, deviation = (jnp.asarray(a, jnp.float32) for a in (ranks.mean(axis=0), ranks.std(axis=0)))
    expected = expected_improvement(ranks, logarithm=True)
    ours = log_expected_improvement(mean[:-1], deviation[:-1], mean[-1])
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)
    plain = expected_improvement(ranks, logarithm=False)
    seen = expected > -600
    np.testing.assert_allclose(np.log(plain[seen]), expected[seen], rtol=1e-3)
    assert plain.argmax() == expected.argmax() == np.argmax(ours)


@pytest.mark.parametrize("inputs", [3, 32])
def test_initialisation_has_the_distribution_of_pytorch(inputs):
    model = ModelConfig(members=400, hidden=(inputs, 12), context="none", initialiser="torch_uniform")
    params = init(model, 4, KEY).scorers
    torch.manual_seed(0)
    layers = [torch.nn.Linear(inputs, 12) for _ in range(400)]
    bound = 1.0 / np.sqrt(inputs)
    for name, theirs in (("kernel", [layer.weight for layer in layers]), ("bias", [layer.bias for layer in layers])):
        ours = np.asarray(params[f"hidden_1_{name}"]).ravel()
        theirs = torch.stack(theirs).detach().numpy().ravel()
        assert bound * 0.999 < np.abs(ours).max() <= bound
        assert np.abs(theirs).max() <= bound
        spread = bound / np.sqrt(3) / np.sqrt(len(ours))
        assert abs(ours.mean()) < 4 * spread
        assert np.mean(ours**2) == pytest.approx(bound**2 / 3, rel=5 / np.sqrt(len(ours)))
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
        assert stats.kstest(ours, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-3
    zero_bias = init(replace(model, initialiser="lecun_normal"), 4, KEY).scorers["hidden_1_kernel"]
    assert stats.ks_2samp(np.asarray(zero_bias).ravel(), theirs).pvalue < 1e-6, "the test sees no difference at all"


@pytest.mark.parametrize("decisions", [LIBRARY, REFERENCE], ids=["library", "reference"])
def test_it_learns_and_optimises(decisions, tasks):
    tables, model = [tensors(task) for task in tasks.values()], replace(SMALL, context="shared")
    fixed = [draw_lists(tables, 20, torch.Generator().manual_seed(9))]
    untrained, trained = (
        meta_train(tables, model, decisions, steps=steps, seed=1, learning_rate=1e-2) for steps in (0, 100)
    )
    with torch.no_grad():
        assert total_loss(trained, fixed, decisions) < 0.95 * total_loss(untrained, fixed, decisions)

    task = next(iter(tasks.values()))
    design, go = np.argsort(task.y)[:5], {"trials": 4, "epochs": 5, "learning_rate": 1e-3}
    before = host_tree(model, trained)
    trace = optimise(trained, task, design, decisions, seed=1, **go)
    assert trace.shape == (5,)
    assert (np.diff(trace) >= 0).all()
    assert trace[0] < 0.5 < trace[-1], "the meta-trained ensemble finds no better row than the worst five"
    np.testing.assert_array_equal(trace, optimise(trained, task, design, decisions, seed=1, **go))
    jax.tree.map(np.testing.assert_array_equal, before, host_tree(model, trained))

    at_optimum = optimise(trained, task, [int(np.argmax(task.y))], decisions, seed=1, **go)
    np.testing.assert_array_equal(at_optimum, 1.0)


def test_an_empty_support_is_no_number_in_the_published_code(tasks):
    table = tensors(next(iter(tasks.values())))
    history = Table(*(field[:4] for field in table))
    ensemble = Ensemble(replace(SMALL, context="shared"), table.x.shape[-1], "table")
    for decisions, finite in ((REFERENCE, False), (LIBRARY, True)):
        tuned = fine_tune(ensemble, history, decisions, generator=torch.Generator(), epochs=1)
        assert all(torch.isfinite(p).all() for p in tuned.scorers.parameters()) == finite


def test_equal_values_are_taken_first_or_at_random(tasks):
    table = tensors(next(iter(tasks.values())))
    ensemble = Ensemble(replace(SMALL, context="none"), table.x.shape[-1], "table")
    with torch.no_grad():
        for parameter in ensemble.parameters():
            parameter.zero_()
    history, rest = Table(*(field[:5] for field in table)), table.x[5:25]

    def picks(decisions):
        generator = torch.Generator().manual_seed(0)
        return {suggest(ensemble, history, history.x[0], rest, decisions, generator) for _ in range(60)}

    assert picks(REFERENCE) == {0}
    assert len(picks(LIBRARY)) > 10
