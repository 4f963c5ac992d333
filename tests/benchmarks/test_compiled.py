"""What is said of programs for an accelerator; those that libtpu compiles need no TPU, but the package."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from benchmarks import compiled
from benchmarks.suite.programs import Workload, loop_workloads, mesh_workloads
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.tpu import layout_of


@pytest.fixture
def describe(monkeypatch, tmp_path):
    """Describes programs for chips of a TPU that is not there."""
    pytest.importorskip("libtpu", reason='needs libtpu: pip install --no-deps "libtpu==0.0.42.*"')
    for name, value in compiled.ENVIRONMENT["tpu"].items():
        monkeypatch.setenv(name, value)

    def rows(workloads, mesh=None):
        mesh = mesh or compiled.described_mesh("v5e:2x2")
        return compiled.describe_all([(one, mesh) for one in workloads], compiled.CHIPS["v5e"], tmp_path)

    return rows


def scanned(a, xs):
    return lax.scan(lambda carry, x: (jnp.tanh(carry @ carry) + x, None), a, xs)[0]


def test_a_loop_is_compiled_for_a_tpu(describe, capsys):
    program = jax.jit(scanned), (jnp.ones((8, 32, 32)), jnp.ones((77, 8, 32, 32)))
    (row,) = describe([Workload("a product", 77, program, runs=8)])
    assert {"compile_s", "kernels", "collectives", "temporary_bytes"} <= row.keys()
    assert (row["name"], row["runs"], row["lists"]) == ("a product", 8, None)
    assert min(row["bytes"], row["cycles"], row["least_s"]) > 0
    assert "bytes" in capsys.readouterr().out


def test_fine_tuning_is_one_kernel_that_keeps_members_on_the_chip(describe):
    model = ModelConfig(members=4, hidden=(32, 32), phi=(32, 32), rho=(32, 16))
    (loop,) = loop_workloads(model, [2], [], [16])
    (row,) = describe([loop])
    assert (row["kernels"], loop.kernel_passes) == (1, 2)
    # An epoch brings in what it draws, three rows of lanes; the parameters come and go once in a thousand epochs.
    draws, parameters = 3 * 128 * 4, layout_of(model, 16).rows * 128 * 4
    assert 2 * draws <= row["bytes"] <= 1.05 * 2 * (draws + 2 * parameters / loop.turns) + 100


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("trials", [320, 512])
def test_long_histories_fit_into_the_chip(describe, trials):
    """Three groups of members together do not: the compiler refused them from 320 trials on."""
    (row,) = describe(loop_workloads(ModelConfig(), [1], [], [trials]))
    assert row["kernels"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "exchanges"), [((2, 1), False), ((1, 2), True), ((4, 4), True)])
def test_chips_exchange_gradients_of_lists_and_nothing_of_members_or_runs(describe, shape, exchanges):
    """Of 16 chips as many take a step as its members and lists are shared out over, runs all."""
    model = ModelConfig(members=2, hidden=(8,), phi=(8,), rho=(8,))
    mesh = compiled.described_mesh("v5e:4x4" if shape == (4, 4) else "v5e:2x2", shape, ("rows", "columns"))
    step, grid = describe(mesh_workloads(model, mesh, lists=2, runs=4, rows=64), mesh)
    assert (step["collectives"] > 0) == exchanges
    assert grid["collectives"] == 0


def test_cycles_are_those_of_the_longest_schedule_of_the_kernel(tmp_path):
    """The compiler leaves a file for each kernel; those that stay would count for the next program too."""
    head, cycle = "== UTILIZATION:\n", "0 0 1 0 0 0 0 0 0 2\n"
    for name, cycles in (("1-fit_members.0", 3), ("2-fit_members.1", 5), ("3-other", 9)):
        (tmp_path / f"{name}-utilization.txt").write_text(head + cycles * cycle)
    assert compiled.take_cycles(tmp_path, "fit_members") == 5
    assert not list(tmp_path.iterdir())
    assert compiled.take_cycles(tmp_path, "fit_members") == 0


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_without_the_compiler_one_line_says_so(platform, monkeypatch, capsys):
    def missing(topology):
        raise RuntimeError("no plugin\nat length")

    for name, value in compiled.ENVIRONMENT[platform].items():
        monkeypatch.setenv(name, value)  # what is set in there is taken back
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "")
    monkeypatch.setattr(compiled, "described_mesh", missing)
    assert compiled.main([platform, "--runs", "--lists"]) == 2
    assert capsys.readouterr().err == f"the compiler of a {platform} is needed (see --help): no plugin\n"
