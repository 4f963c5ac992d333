# ruff: noqa: E402
"""The fast PyTorch peer against the plain one: same weights and lists, same gradients, steps and values."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from benchmarks.peers import torch_best_search as search
from benchmarks.peers.torch_best import BLOCK, Layout, Lists, Trainer, gradient, start, step_sizes, train_step
from benchmarks.peers.torch_reference import Batch, Ensemble, adam, expected_improvement, host_tree, rank, total_loss
from benchmarks.peers.torch_reference import train_step as plain_step
from dre_jax.methods.dre.model.model_config import ModelConfig

MODEL = ModelConfig(members=3, hidden=(8, 6), phi=(7, 5), rho=(6, 4))
COLUMNS, RATE = 5, 1e-3


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(params=["own", "shared"])
def model(request):
    return replace(MODEL, context=request.param)


def histories(runs, n, *, levels=None):
    """Random histories in float64, sorted."""
    rng = np.random.default_rng(n)
    y = rng.random((runs, n)) if levels is None else rng.integers(levels, size=(runs, n)) / levels
    level = np.stack([np.unique(-row, return_inverse=True)[1] for row in y])
    batch = search.Histories(torch.tensor(rng.random((runs, n, COLUMNS))), torch.tensor(y), torch.tensor(level))
    return search.sort_histories(batch)


def batches(one, run, support, query):
    """The same rows for the plain peer, a batch for each epoch."""
    x, y, level = (field[run] for field in one)
    return [Batch(x[s][None], y[s][None], x[q][None], level[q][None]) for s, q in zip(support, query, strict=True)]


def at(lists, i):
    """One step's lists."""
    return Lists(*(None if field is None else field[i] for field in lists))


def plain(model, *, runs=1):
    """Ensembles in float64, and their parameters as the fast peer's vector."""
    ensembles = [Ensemble(model, COLUMNS).double() for _ in range(runs)]
    return ensembles, Layout(model, COLUMNS, model.members * runs), stack(model, ensembles)


def stack(model, ensembles, *, grad=False):
    """Parameters or gradients of several ensembles, members of all side by side."""
    one = Layout(model, COLUMNS, model.members)
    parts = [one.views(one.pack(host_tree(model, ensemble, gradient=grad))) for ensemble in ensembles]
    joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return Layout(model, COLUMNS, model.members * len(ensembles)).join(joined)


def triangle(n):
    return torch.ones(n, n, dtype=torch.float64).tril()


@pytest.mark.parametrize("levels", [None, 4], ids=["distinct", "tied"])
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("in_logarithms", [False, True])
def test_gradient(model, runs, levels, in_logarithms):
    (ensembles, layout, flat), one = plain(model, runs=runs), histories(runs, 13, levels=levels)
    support, query = (rows.view(1, runs, -1) for rows in search.draw(runs, 13, 2, torch.Generator().manual_seed(1)))
    lists = search.read_epochs(one, layout, support, query, tied=levels is not None)
    result, _ = gradient(layout, flat, at(lists, 0), None if in_logarithms else triangle(11))
    for run, ensemble in enumerate(ensembles):
        total_loss(ensemble, batches(one, run, support[:, run], query[:, run])).backward()
    torch.testing.assert_close(result, stack(model, ensembles, grad=True), rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # PyTorch's compiler warns of PyTorch's own
@pytest.mark.parametrize("compiled", [False, True])
def test_fine_tuning_steps(model, compiled, monkeypatch):
    # Traced and transformed like for a compiler, but not compiled: that takes a minute, and the benchmark checks it.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    epochs, n = BLOCK + 7, 12
    (ensembles, layout, flat), one = plain(model), histories(1, n, levels=6)
    support, query = search.draw(epochs, n, 2, torch.Generator().manual_seed(2))
    optimiser = adam(ensembles[0], RATE)
    for batch in batches(one, 0, support, query):
        plain_step(ensembles[0], optimiser, [batch])
    drawn = iter([(support[:BLOCK], query[:BLOCK]), (support[BLOCK:], query[BLOCK:])])
    monkeypatch.setattr(search, "draw", lambda *_: next(drawn))
    trainer = Trainer(layout, flat, compiled=compiled)
    with torch.no_grad():
        search.fine_tune(trainer, one, epochs=epochs, learning_rate=RATE, generator=torch.Generator())
    there = stack(model, ensembles)
    assert float((there - flat).abs().max()) > 0.01, "nothing was learned"
    torch.testing.assert_close(trainer.state.flat, there, rtol=1e-6, atol=1e-7)


def test_meta_training_steps_of_several_lists(model):
    ensembles, layout, flat = plain(model)
    draws = model.members if model.context == "own" else 1
    rng, (tasks, rows, steps, count) = np.random.default_rng(3), (4, 30, 6, 2)
    one = histories(tasks, rows, levels=9)
    drawn = search.draw_lists(one, (steps, draws, count), rng, n_support=6, n_query=20)
    lists = search.read_lists(one, *drawn, tied=True)
    optimiser = adam(ensembles[0], RATE)
    for step in range(steps):
        task, support, query = (part[step] for part in drawn)
        read = []
        for m in range(draws):
            t = task[m][:, None]
            x, level = one.x[t, query[m]], one.level[t, query[m]].contiguous()
            read.append(Batch(one.x[t, support[m]], one.response[t, support[m]], x, level))
        plain_step(ensembles[0], optimiser, read)
    trainer = Trainer(layout, flat, compiled=False)
    with torch.no_grad():
        trainer.block(lists, step_sizes(RATE, range(1, steps + 1), flat))
    torch.testing.assert_close(trainer.state.flat, stack(model, ensembles), rtol=1e-6, atol=1e-8)
    together = torch.cat([drawn[1], drawn[2]], dim=-1)
    assert all(len(set(row.tolist())) == 26 for row in together.view(-1, 26)), "a row is drawn twice"


def test_scores_too_far_apart_for_one_shift_are_done_again():
    (ensembles, layout, _), one = plain(MODEL), histories(1, 12)
    with torch.no_grad():
        for scorer in ensembles[0].scorers:
            scorer[-1].weight.mul_(3e4)
    flat = stack(MODEL, ensembles).float()
    single = search.Histories(one.x.float(), one.response.float(), one.level)
    support, query = (rows[:, None] for rows in search.draw(3, 12, 2, torch.Generator().manual_seed(4)))
    lists = search.read_epochs(single, layout, support, query, tied=False)
    assert float(gradient(layout, flat, at(lists, 0), triangle(10).float())[1]) < 3e-30, "one shift is enough"
    trainer, by_hand, sizes = Trainer(layout, flat, compiled=False), start(flat), step_sizes(RATE, range(1, 4), flat)
    trainer.block(lists, sizes)
    for e in range(3):
        train_step(layout, by_hand, at(lists, e), None, sizes[e])
    assert torch.isfinite(trainer.state.flat).all()
    assert torch.equal(trainer.state.flat, by_hand.flat)


def test_values_of_candidates(model):
    (ensembles, layout, flat), one = plain(model, runs=2), histories(2, 9)
    candidates = torch.rand(2, 40, COLUMNS, dtype=torch.float64)
    trainer = Trainer(layout, flat, compiled=False)
    values = search.acquire(trainer, one, candidates)
    for run, ensemble in enumerate(ensembles):
        everyone = torch.cat([candidates[run], one.x[run, :1]])[None]
        with torch.no_grad():
            scores = ensemble([Batch(one.x[run][None], one.response[run][None], everyone, torch.zeros(1, 0))])
        expected = expected_improvement(rank(torch.cat(scores).numpy()), logarithm=True)
        np.testing.assert_allclose(values[run], expected, rtol=1e-9, atol=1e-9)
    tied = np.random.default_rng(0).integers(5, size=(2, 3, 12)).astype(float)
    np.testing.assert_array_equal(search.mean_ranks(torch.tensor(tied)), rank(tied))
