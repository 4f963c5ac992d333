"""Layouts of the CUDA kernel by device, and what NVRTC makes of them, without a GPU."""

import importlib
import re

import pytest

from dre_jax.methods.dre import ModelConfig
from dre_jax.methods.dre.backends.cuda import why_not
from dre_jax.methods.dre.backends.cuda.compile import compile_source, load_nvrtc, source
from dre_jax.methods.dre.backends.cuda.decision import Decision
from dre_jax.methods.dre.backends.cuda.plan import Limits, Sizes, plan_for
from dre_jax.methods.dre.backends.reference.request import StepRequest

pytestmark = pytest.mark.cuda

DEVICES = {
    "A100": Limits(80, 166_912, 167_936, 108),
    "H100": Limits(90, 232_448, 233_472, 132),
    "B200": Limits(100, 232_448, 233_472, 148),
    "RTX 5090": Limits(120, 101_376, 102_400, 170),
}
LONG, SHORT = Sizes(16, 21, 84), Sizes(16, 6, 24)
MANY = 4300  # runs and members


def constant(plan, name):
    return int(re.search(rf"constexpr int {name} = (\d+);", plan.constants)[1])


def test_two_blocks_share_a_multiprocessor_where_they_fit():
    blocks = {name: constant(plan_for(ModelConfig(), LONG, limits, MANY), "BLOCKS") for name, limits in DEVICES.items()}
    assert blocks == {"A100": 1, "H100": 2, "B200": 2, "RTX 5090": 1}
    assert all(
        constant(plan_for(ModelConfig(), SHORT, limits, MANY), "BLOCKS") == 2 for limits in list(DEVICES.values())[:3]
    )


def test_activations_that_do_not_fit_lie_in_global_memory():
    inside = {
        name: constant(plan_for(ModelConfig(), LONG, limits, MANY), "ACTIVATIONS_SHARED")
        for name, limits in DEVICES.items()
    }
    assert inside == {"A100": 1, "H100": 1, "B200": 1, "RTX 5090": 0}
    for limits in DEVICES.values():
        assert plan_for(ModelConfig(), LONG, limits, MANY).shared_bytes <= limits.shared_bytes
    wide = ModelConfig(hidden=(64,) * 8, phi=(64,) * 4, rho=(64,) * 4)
    assert plan_for(wide, LONG, DEVICES["RTX 5090"], MANY) is None


def test_few_blocks_get_more_warps():
    plans = [plan_for(ModelConfig(), LONG, DEVICES["H100"], blocks) for blocks in (10, 132, 133)]
    assert [plan.threads for plan in plans] == [256, 256, 128]
    assert len({plan.parameters for plan in plans}) == 1  # parameters are packed before the batch is known


def test_a_block_that_fits_alone_has_eight_warps():
    """Four would leave a multiprocessor half empty."""
    threads = {name: plan_for(ModelConfig(), LONG, limits, MANY).threads for name, limits in DEVICES.items()}
    assert threads == {"A100": 256, "H100": 128, "B200": 128, "RTX 5090": 256}
    assert plan_for(ModelConfig(), SHORT, DEVICES["A100"], MANY).threads == 128


def test_blocks_of_a_member_share_the_lists_of_a_step():
    groups = [plan_for(ModelConfig(), LONG._replace(lists=n), DEVICES["H100"], 10).group for n in (1, 4, 100)]
    assert groups == [1, 4, 13]
    assert plan_for(ModelConfig(), LONG._replace(lists=100), DEVICES["H100"], 130).group == 1
    assert plan_for(ModelConfig(context="shared"), LONG._replace(lists=100), DEVICES["H100"], 10).group == 1


def request(**others):
    sizes = {"columns": 16, "rows": 105, "support": 21, "query": 84, "lists_per_step": 1}
    defaults = {"model": ModelConfig(), "loss": "listmle", "own_lists": False, "params_only": True}
    return StepRequest(**sizes | defaults | others)


def test_what_the_kernel_does_not_support(monkeypatch):
    assert why_not(request()) == "it is for NVIDIA GPUs, and JAX computes on cpu"
    decision = Decision(DEVICES["H100"], None)
    module = importlib.import_module("dre_jax.methods.dre.backends.cuda.decision")
    monkeypatch.setattr(module, "decision", lambda: decision)
    assert why_not(request()) is None
    assert why_not(request(model=ModelConfig(context="shared"))) is None
    for others, reason in (
        ({"loss": "listnet"}, "the loss listnet is not supported"),
        ({"model": ModelConfig(range_limit=3.0)}, "scores have a range controller"),
        ({"model": ModelConfig(rho=(65, 4))}, "a layer is wider than 64"),
        ({"columns": 65}, "there are more than 64 columns"),
        ({"query": 513}, "a list is longer than 512"),
        ({"lists_per_step": 209}, "a step has more than 208 lists"),
        ({"dtype": "float64"}, "numbers are not float32"),
        ({"is_averaged": True}, "devices share the lists of a member"),
        (
            {"model": ModelConfig(context="shared"), "own_lists": True},
            "members share a deep set, but not their lists",
        ),
        (
            {"model": ModelConfig(context="shared", members=133)},
            "members that share a deep set must run side by side",
        ),
    ):
        assert why_not(request(**others)) == reason


def _has_nvrtc():
    try:
        return bool(load_nvrtc(90))
    except OSError:
        return False


SHARED = ModelConfig(context="shared")
SEVERAL = LONG._replace(lists=4)


@pytest.mark.skipif(not _has_nvrtc(), reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc")
@pytest.mark.parametrize(
    ("device", "model", "sizes", "blocks"),
    [
        pytest.param("H100", ModelConfig(), LONG, MANY, marks=pytest.mark.thorough),
        ("H100", ModelConfig(), SHORT, 10),
        pytest.param("H100", ModelConfig(), SEVERAL, 10, marks=pytest.mark.thorough),
        pytest.param("A100", ModelConfig(), LONG, MANY, marks=pytest.mark.thorough),
        pytest.param("B200", ModelConfig(), LONG, 10, marks=pytest.mark.thorough),
        pytest.param("RTX 5090", SHARED, SEVERAL, MANY, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.slow
def test_nvrtc_compiles_it(device, model, sizes, blocks):
    limits = DEVICES[device]
    plan = plan_for(model, sizes, limits, blocks)
    binary, log = compile_source(source(plan), limits.architecture)
    assert binary.startswith(b"\x7fELF")
    assert "warning" not in log
    registers, spilled = (
        int(re.search(text, log)[1]) for text in (r"Used (\d+) registers", r"(\d+) bytes spill stores")
    )
    room = 65536 // (plan.threads * constant(plan, "BLOCKS"))
    assert registers <= min(255, room)
    assert spilled <= 100
