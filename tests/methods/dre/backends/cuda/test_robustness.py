"""What happens where the CUDA kernel cannot be compiled, loaded or launched, and the check before it is used."""

import importlib
import logging
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import native
from dre_jax.errors import DeviceError
from dre_jax.methods.dre import FineTuneConfig
from dre_jax.methods.dre.backends import cuda
from dre_jax.methods.dre.backends.cuda import launch_check, library
from dre_jax.methods.dre.backends.cuda.compile import CompileError
from dre_jax.methods.dre.backends.cuda.plan import Limits
from dre_jax.methods.dre.backends.cuda.steps import take_steps
from dre_jax.methods.dre.backends.provenance import backend
from dre_jax.methods.dre.backends.reference import scan
from tests.methods.dre.backends.cuda.emulation import emulated_cubin, emulated_limits
from tests.methods.dre.backends.cuda.test_kernel import (
    MODELS,
    SMALL,
    assert_same_gradients,
    by_kernel,
    by_scan,
    epochs_of,
    history,
    limits,
    sizes_of,
    with_start,
)
from tests.oracles import widen

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(native.compiler_version() is None, reason="no C++ compiler on this machine"),
]
decision_module = importlib.import_module("dre_jax.methods.dre.backends.cuda.decision")


@pytest.fixture(autouse=True)
def fresh_kernels(monkeypatch):
    """Kernels are added anew, and their refusals forgotten."""
    emulated_limits()
    monkeypatch.setattr(library, "_refused", [])
    library.add_kernel.cache_clear()
    yield
    library.add_kernel.cache_clear()


def small_problem(columns=3, n=16):
    return with_start(
        SMALL, columns, *epochs_of(FineTuneConfig(epochs=2), history(n, columns, n)), sizes_of(2, still=False)
    )


def refuse_to_compile(plan, architecture, driver_major):
    raise CompileError("error: no such instruction")


@pytest.mark.parametrize("cause", ["driver", "compiler"])
@pytest.mark.slow
def test_a_refused_kernel_leaves_the_steps_to_the_scan(cause, monkeypatch, caplog):
    """Also for a batch of runs, whose number is known only when the program is traced."""
    if cause == "driver":
        monkeypatch.setenv("EMULATED_CUDA_ERROR", "cuModuleLoadData 209")
        reason = "cuModuleLoadData returned CUDA_ERROR_NO_BINARY_FOR_GPU (209), for the device 0"
    else:
        monkeypatch.setattr(library, "cubin", refuse_to_compile)
        reason = "error: no such instruction"
    arguments = small_problem()
    device = limits(multiprocessors=7)  # a plan that no other test has loaded
    start, sizes = arguments[2], arguments[4]

    def fit(x, response, lists):
        return take_steps(SMALL, device, "float32", x, response, start, lists, sizes, params_only=True)[0][0]

    def expect(x, response, lists):
        return scan.take_steps(SMALL, "listmle", x, response, start, lists, sizes)[0][0]

    batch = jax.tree.map(lambda a: np.stack([a] * 3), (*arguments[:2], arguments[3]))
    with caplog.at_level(logging.WARNING):
        results = jax.jit(jax.vmap(fit))(*batch)
        standing = (*arguments[:4], sizes_of(2, still=True))
        full = by_kernel(SMALL, standing, device)
    for name, leaf in jax.jit(jax.vmap(expect))(*batch).scorers.items():
        np.testing.assert_allclose(results.scorers[name], leaf, atol=1e-6)
    assert_same_gradients(full, by_scan(SMALL, standing))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1, "one run and three runs have kernels of their own"
    assert messages[0].endswith(f"their kernel is refused: {reason}")
    assert cuda.refused_kernels() == [reason]


def test_results_say_that_a_kernel_was_refused(monkeypatch):
    monkeypatch.setattr(decision_module, "decision", lambda: None)
    decision = decision_module.Decision(Limits(90, 232_448, 233_472, 132), None)
    monkeypatch.setattr("dre_jax.methods.dre.backends.cuda.decision", lambda: decision)
    assert backend()["steps"] == f"cuda {cuda.fingerprint()} float32"
    monkeypatch.setattr(library, "_refused", ["no memory"])
    assert backend()["steps"] == f"cuda {cuda.fingerprint()} float32, xla"


def test_an_error_of_a_launch_is_one_line_that_names_it(monkeypatch):
    """Once a kernel is loaded, only a device that has stopped refuses a launch."""
    arguments = with_start(
        MODELS["odd"], 3, *epochs_of(FineTuneConfig(epochs=2), history(40, 3, 48)), sizes_of(2, still=True)
    )
    monkeypatch.setenv("EMULATED_CUDA_ERROR", "cuLaunchKernel 719")
    line = r"training steps failed: cuLaunchKernel returned CUDA_ERROR_LAUNCH_FAILED \(719\); DRE_JAX_CUDA=0 computes"
    with pytest.raises(jax.errors.JaxRuntimeError, match=line):
        jax.block_until_ready(by_kernel(MODELS["odd"], arguments, limits(multiprocessors=1)))


def test_limits_are_what_each_device_of_the_process_has():
    """The emulated devices: an H100, one with fewer multiprocessors, an A100."""
    driver = library_path()
    assert library.open_library(driver, "cpu", [1]).multiprocessors == 60
    assert library.open_library(driver, "cpu", [0, 1]) == Limits(90, 232_448, 233_472, 60, 13)
    with pytest.raises(ValueError, match=r"8\.0, 9\.0.*CUDA_VISIBLE_DEVICES"):
        library.open_library(driver, "cpu", [0, 2])
    assert library.open_library(driver, "cpu", [0]) == emulated_limits()


def library_path():
    from tests.methods.dre.backends.cuda.emulation import HERE, build

    return str(build((HERE / "emulated_driver.cc").read_text(), "-O1"))


@pytest.mark.slow
@pytest.mark.parametrize("lists", [1, 2])
def test_the_numbers_of_the_check_are_those_of_the_scan_in_float64(lists):
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        by_scan = jax.jit(partial(scan.take_steps, launch_check.MODEL, "listmle"))
        outcome = launch_check.summary(jax.device_get(by_scan(*widen(launch_check.problem(lists)))))
    for values, expected in zip(outcome, launch_check.EXPECTED[lists], strict=True):
        np.testing.assert_allclose(values, expected, rtol=1e-8)


@pytest.mark.slow
def test_the_check_launches_what_may_fail_elsewhere(monkeypatch):
    plans = []
    monkeypatch.setattr(library, "cubin", lambda plan, *others: plans.append(plan) or emulated_cubin(plan, *others))
    with jax.transfer_guard("disallow"), jax.disable_jit():
        launch_check.check_launch(emulated_limits())
    assert all(plan.shared_bytes > 2 * 48 * 1024 for plan in plans)
    assert {(plan.threads, plan.group) for plan in plans} == {(128, 1), (256, 2)} | {(256, 1)} & {
        (plan.threads, plan.group) for plan in plans
    }
    wrong = dict.fromkeys((1, 2), launch_check.EXPECTED[1]._replace(norms=[0.8762, 0.5]))
    monkeypatch.setattr(launch_check, "EXPECTED", wrong)
    with pytest.raises(ValueError, match=r"\[0.8762, 0.5\].*\[0.876"):
        launch_check.check_launch(emulated_limits())


@pytest.fixture
def a_gpu(monkeypatch):
    """A process that believes in its GPU; the check fails."""

    def fail(limits):
        raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(decision_module, "open_library", lambda *_: emulated_limits())
    monkeypatch.setattr(decision_module, "check_launch", fail)
    decision_module.decision.cache_clear()
    yield
    decision_module.decision.cache_clear()


def test_a_failed_check_leaves_the_steps_to_xla(a_gpu, caplog):
    assert decision_module.decision() == (None, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert "its CUDA kernel cannot be used: CUDA_ERROR_ILLEGAL_ADDRESS" in caplog.text


def test_a_check_that_stops_the_device_says_so(a_gpu, monkeypatch):
    monkeypatch.setattr(decision_module, "device_computes", lambda: False)
    with pytest.raises(DeviceError, match=r"DRE_JAX_CUDA=0 \(CUDA_ERROR_ILLEGAL_ADDRESS\)"):
        decision_module.decision()


@pytest.mark.parametrize("setting", [jax.transfer_guard("disallow"), jax.disable_jit(), jax.debug_nans(True)])
def test_a_working_device_computes_under_any_setting(setting):
    ones = jnp.ones(2)
    with setting:
        assert decision_module.device_computes()
        traced = jax.jit(lambda x: x + x if decision_module.device_computes() else x)(ones)
    np.testing.assert_array_equal(traced, [2.0, 2.0])
