"""Counted operations against a count by hand, PyTorch's counter, and XLA's."""

import pytest

from benchmarks.suite import floors
from dre_jax.methods.dre.model.model_config import ModelConfig, preset

TINY = ModelConfig(members=2, hidden=(3,), phi=(4, 5), rho=(6,))


def test_by_hand():
    # One list, D = 2: support of 7 rows, query of 11. Forward, and twice that backward but where noted.
    phi = 2 * 7 * 3 * 4 * 2  # three columns in, no gradient of the inputs
    after_the_mean = 2 * (4 * 5 + 5 * 6) * 3
    context = 2 * 6 * 3 * 3
    scorer = 2 * 11 * (2 * 3 * 2 + 3 * 1 * 3)  # no gradient of the configurations
    assert floors.products(TINY, 2, 7, 11) == 2 * (phi + after_the_mean + context + scorer)
    forward = 2 * 7 * 12 + 2 * (20 + 30) + 2 * 18 + 2 * 11 * (6 + 3)
    assert floors.products(TINY, 2, 7, 11, backward=False) == 2 * forward


def test_as_many_products_as_the_fast_peer_makes():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from torch.utils.flop_counter import FlopCounterMode

    from benchmarks.peers.torch_best import Layout, Lists, gradient

    for model, lists in ((preset("default"), 1), (TINY, 3), (preset("paper"), 2)):
        layout = Layout(model, 5, model.members)
        flat = torch.zeros(layout.size)
        inputs = Lists(torch.rand(1, lists, 4, 6), torch.rand(1, lists, 9, 5), torch.ones(1, 1, 9), None, None)
        with FlopCounterMode(display=False) as counter:
            gradient(layout, flat, inputs, None)
        assert counter.get_total_flops() == floors.products(model, 5, 4, 9, lists=lists)


def test_trials_runs_and_seconds():
    model = preset("default")
    one = floors.trial(model, 16, 105, 300, 1000)
    assert 17e9 < one.flops < 24e9  # DESIGN's rule of thumb: 24 million operations an epoch, multiplied the long way
    assert floors.trial(model, 16, 105, 300, 0).flops == floors.products(model, 16, 105, 301, backward=False)
    whole = floors.run(model, 16, 5, 3, 300, 10)
    assert whole.flops == sum(floors.trial(model, 16, n, 300, 10).flops for n in (5, 6, 7))
    assert floors.Work(100.0, 30.0).seconds(50.0, 10.0) == 3.0
    assert floors.Work(100.0, 10.0).seconds(50.0, 10.0) == 2.0
