# ruff: noqa: E402
"""The library against the PyTorch reference: same weights and lists, same losses, gradients, parameters and picks."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from benchmarks.peers.torch_golden import golden
from benchmarks.peers.torch_reference import EPSILON, Batch, listmle, sort_batch

pytestmark = pytest.mark.defaults


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_the_golden_file_is_reproducible():
    """The rest of the parity is in tests/methods/dre/test_torch_parity.py, which reads the same file."""
    stored = json.loads((Path(__file__).parents[1] / "methods" / "dre" / "torch_parity.json").read_text())
    result = json.loads(json.dumps(golden()))
    assert jax.tree.structure(result) == jax.tree.structure(stored)
    for (path, one), other in zip(jax.tree.leaves_with_path(result), jax.tree.leaves(stored), strict=True):
        if isinstance(other, str):
            continue
        assert one == pytest.approx(other, rel=1e-6, abs=1e-9), jax.tree_util.keystr(path)


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
    result = {}
    for _ in range(40):
        order = sort_batch(batch, generator, shuffle=True)
        loss = float(listmle(torch.tensor(values)[None], order, EPSILON))
        result[tuple(order.order[0].tolist())] = loss
    assert set(result) == {(0, 1, 3, 2), (0, 3, 1, 2)}
    for order, loss in result.items():
        assert loss == pytest.approx(slow_listmle(values[list(order)], 1e-10))
        # The last item alone costs nothing, but the epsilon beside exp(-41) makes it cost 18.
        assert loss - slow_listmle(values[list(order)], 0.0) > 10
