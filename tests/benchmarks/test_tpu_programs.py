"""What is said of programs for a TPU; those that libtpu compiles need no TPU, but the package."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from benchmarks import tpu_programs
from benchmarks.suite.loops import Loop, loops, on_meshes
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.tpu import layout_of

V5E = tpu_programs.CHIPS["v5e"]


@pytest.fixture
def described(monkeypatch):
    """A chip of a TPU that is not there."""
    pytest.importorskip("libtpu", reason='needs libtpu: pip install --no-deps "libtpu==0.0.42.*"')
    for name, value in tpu_programs.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return NamedSharding(tpu_programs.described_mesh("v5e:2x2"), PartitionSpec())


def scanned(a, xs):
    return lax.scan(lambda carry, x: (jnp.tanh(carry @ carry) + x, None), a, xs)[0]


def test_a_loop_is_compiled_for_a_tpu(described, tmp_path, capsys):
    loop = Loop("a product", 77, (jax.jit(scanned), (jnp.ones((8, 32, 32)), jnp.ones((77, 8, 32, 32)))), runs=8)
    (row,) = tpu_programs.rows([loop], described, V5E, tmp_path)
    keys = {"name", "runs", "lists", "compile_s", "kernels", "copies", "bytes", "padded_bytes", "temporary_bytes"}
    assert keys <= row.keys()
    assert (row["name"], row["runs"], row["lists"]) == ("a product", 8, None)
    # An array of the loop is 32 wide: a quarter of the lanes.
    assert row["padded_bytes"] >= 3 * row["bytes"] > 0
    assert row["cycles"] > 0
    assert row["least_s"] > 0
    assert "padded_bytes" in capsys.readouterr().out


def test_fine_tuning_is_one_kernel_that_keeps_members_on_the_chip(described, tmp_path):
    model = ModelConfig(members=4, hidden=(32, 32), phi=(32, 32), rho=(32, 16))
    (loop,) = loops(model, [2], [], [16])
    (row,) = tpu_programs.rows([loop], described, V5E, tmp_path)
    assert (row["kernels"], row["copies"], loop.walks) == (1, 0, 2)
    # An epoch brings in what it draws, three rows of lanes; the parameters come and go once in a thousand epochs.
    draws, parameters = 3 * 128 * 4, layout_of(model, 16).rows * 128 * 4
    assert 2 * draws <= row["padded_bytes"] <= 1.05 * 2 * (draws + 2 * parameters / loop.turns) + 100
    assert row["padded_bytes"] <= 1.3 * row["bytes"]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("trials", [320, 512])
def test_long_histories_fit_into_the_chip(described, tmp_path, trials):
    """Three groups of members together do not: the compiler refused them from 320 trials on."""
    (loop,) = loops(ModelConfig(), [1], [], [trials])
    (row,) = tpu_programs.rows([loop], described, V5E, tmp_path)
    assert row["kernels"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "exchanges"), [((2, 1), False), ((1, 2), True), ((4, 4), True)])
def test_chips_exchange_gradients_of_lists_and_nothing_of_members_or_runs(described, tmp_path, shape, exchanges):
    """Of 16 chips as many take a step as its members and lists are shared out over, runs all."""
    model = ModelConfig(members=2, hidden=(8,), phi=(8,), rho=(8,))
    mesh = tpu_programs.described_mesh("v5e:4x4" if shape == (4, 4) else "v5e:2x2", shape, ("rows", "columns"))
    described_loops = on_meshes(model, mesh, lists=2, runs=4, rows=64)
    step, grid = tpu_programs.rows(described_loops, NamedSharding(mesh, PartitionSpec()), V5E, tmp_path)
    assert (step["collectives"] > 0) == exchanges
    assert grid["collectives"] == 0


def test_without_the_compiler_one_line_says_so(monkeypatch, capsys):
    def missing(topology):
        raise RuntimeError("no plugin\nat length")

    for name, value in tpu_programs.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)  # what is set in there is taken back
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "")
    monkeypatch.setattr(tpu_programs, "described_mesh", missing)
    assert tpu_programs.main(["--runs", "--lists"]) == 2
    assert capsys.readouterr().err == "the package libtpu is needed, without a TPU (see --help): no plugin\n"
