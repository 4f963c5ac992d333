"""Programs as the compiler of an accelerator builds them, without one: ``python -m benchmarks.compiled {gpu,tpu}``.

XLA compiles for a device that is described to it. Its compiler is needed, the device is not::

    pip install --no-deps jax-cuda12-plugin==J jax-cuda12-pjrt==J nvidia-cuda-nvcc-cu12    # gpu; J: the version of jax
    pip install --no-deps "libtpu==0.0.42.*"    # tpu; the version that jax[tpu] names

Each program is printed with its kernels, exchanges between devices, temporaries and bytes in main memory. On a TPU the
innermost dimension comes in lanes of 128, so that an array 32 wide takes four times its bytes; ``cycles`` is the sum
of the compiler's estimates of the kernels, and for the library's own kernel the cycles of its schedule.

The least time of a turn is computed, not measured. On a GPU, dependent kernels take some microseconds each, however
small, and bytes are limited by the memory; on a TPU, the cycles and the bytes count.
``DRE_JAX_PALLAS=0`` has XLA compile the scan over epochs for a TPU. Compile times are representative without
fine-tuning, whose schedules the compiler has to write out.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

KERNEL = "fit_members"
"""The library's own kernel on a TPU."""
ENVIRONMENT = {
    "gpu": {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"},  # the check asks a driver, of which there is none
    "tpu": {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    },
}
"""Without the TPU's the compiler looks for a metadata server, and only one process may load it."""


class Chip(NamedTuple):
    """Peak rates of a device."""

    bytes_per_s: float
    clock_hz: float = 0.0
    """Of the cycles that a TPU's compiler estimates."""
    kernel_s: float = 0.0
    """From one small kernel to the next, inside a CUDA graph."""


CHIPS = {"h200": Chip(4.8e12, kernel_s=2e-6), "v5e": Chip(819e9, 1.5e9), "v6e": Chip(1640e9, 1.75e9)}
"""NVIDIA's and Google's figures; a TPU's clock is that at which the products reach the rate that Google states."""

# The words are XLA's, the figures NVIDIA's of its H200 (SXM).
H200 = f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: {48 * 1024}
  shared_memory_per_block_optin: {227 * 1024}
  shared_memory_per_core: {228 * 1024}
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: {2**31 - 1}
  block_dim_limit_y: {2**16 - 1}
  block_dim_limit_z: {2**16 - 1}
  memory_bandwidth: {int(CHIPS["h200"].bytes_per_s)}
  l2_cache_size: {50 * 1024**2}
  clock_rate_ghz: 1.98
  device_memory_size: {141 * 10**9}
  registers_per_core_limit: {2**16}
  registers_per_block_limit: {2**16}
  cuda_compute_capability {{ major: 9 }}
}}
runtime_version {{ major: 12 minor: 9 }}
dnn_version_info {{ major: 9 minor: 10 }}
platform_name: "CUDA"
device_description_str: "NVIDIA H200"
"""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    os.environ.update(ENVIRONMENT[options.platform], JAX_PLATFORMS="cpu")
    with tempfile.TemporaryDirectory() as folder:
        if options.platform == "tpu" and options.runs:
            # The compiler writes the schedules of fine-tuning, which doubles the time of compiling.
            dump = f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
            os.environ["LIBTPU_INIT_ARGS"] = f"{dump} --xla_jf_dump_llo_pass_label_regex=.*pre-delay.*"
        try:
            mesh = described_mesh(options.topology)
        except (RuntimeError, ImportError) as error:
            reason = str(error).splitlines()[0]
            print(f"the compiler of a {options.platform} is needed (see --help): {reason}", file=sys.stderr)
            return 2
        from benchmarks.suite import environment

        about = environment.describe("benchmarks.compiled", arguments)
        chip = CHIPS[options.topology.partition(":")[0]]
        rows = describe_all(_workloads(options, mesh), chip, Path(folder))
    about |= {"platform": "described", "device": str(mesh.devices.flat[0].device_kind)}
    if options.platform == "gpu":
        environment.write(options.out, {**about, "device": "NVIDIA H200"}, [], profile=rows)
    else:
        environment.write(options.out, about, rows)
    return 0


def _workloads(options: argparse.Namespace, mesh: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the programs, each with the devices that it is compiled for; one after the other, as inputs are arrays."""
    from benchmarks.suite import ours, programs

    model = replace(ours.default_model(), products=options.products)
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.mesh]
    meshes = [described_mesh(options.topology, shape, ("rows", "columns")) for shape in shapes]
    bodies = programs.loop_workloads(model, options.runs, options.lists, options.history, streamed=options.streamed)
    yield from ((one, mesh) for one in bodies)
    for chips in meshes:
        shared_out = programs.mesh_workloads(model, chips, lists=16, runs=chips.size, rows=64)
        yield from ((one, chips) for one in shared_out)


def describe_all(workloads: Iterable[tuple[Any, Any]], chip: Chip, schedules: Path) -> list[dict[str, Any]]:
    """Returns a row for each program; each is printed as soon as it is compiled.

    Args:
      workloads: programs, each with a mesh of the devices that it is compiled for.
      chip: the rates of these devices.
      schedules: the folder that a TPU's compiler writes its schedules to.
    """
    from jax.sharding import NamedSharding, PartitionSpec

    from benchmarks.suite.programs import describe

    rows = []
    for workload, mesh in workloads:
        row = describe(workload, NamedSharding(mesh, PartitionSpec()))
        if workload.turns and (cycles := take_cycles(schedules, KERNEL)):
            row["cycles"] = cycles * workload.kernel_passes
        rows.append({**row, "least_s": least_seconds(row, chip) if workload.turns else None})
        print(", ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    return rows


def described_mesh(topology: str, shape: Sequence[int] = (1,), names: Sequence[str] = ("devices",)) -> Any:
    """Returns a mesh of described devices: of an "h200", or of chips of a TPU such as "v5e:2x2".

    Raises:
      RuntimeError: if the compiler is not installed.
    """
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh

    if topology == "h200":
        description = topologies.get_topology_desc("h200", "cuda", target_config=H200, topology="1x1x1")
    else:
        description = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    return Mesh(np.array(description.devices[: math.prod(shape)]).reshape(shape), tuple(names))


def least_seconds(row: dict[str, Any], chip: Chip) -> float:
    """Returns the least time of a turn: the longest of what its kernels, its cycles and its bytes need.

    Example:
      >>> least_seconds({"kernels": 50, "bytes": 10_000_000}, CHIPS["h200"])
      0.0001
      >>> least_seconds({"bytes": 819_000_000, "cycles": 3_000}, CHIPS["v5e"])
      0.001
    """
    if chip.kernel_s:
        return float(max(row["kernels"] * chip.kernel_s, row["bytes"] / chip.bytes_per_s))
    return float(max(row["bytes"] / chip.bytes_per_s, row["cycles"] / chip.clock_hz))


def take_cycles(folder: Path, kernel: str) -> int:
    """Returns the cycles of the longest schedule of a kernel, 0 without one; removes all schedules.

    A schedule has a line of ten numbers for each cycle: what the cycle keeps busy. Waiting for products is included.
    """
    schedules = [path.read_text() for path in folder.glob("*utilization.txt") if kernel in path.name]
    for path in folder.iterdir():
        path.unlink()
    return max((len(re.findall(r"^ *\d+(?: \d+){9} *$", text, re.MULTILINE)) for text in schedules), default=0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compiled", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    platforms = parser.add_subparsers(dest="platform", required=True)
    gpu, tpu = (platforms.add_parser(name, help=f"for a {name.upper()}") for name in ("gpu", "tpu"))
    for platform, lists in ((gpu, [1, 16]), (tpu, [1, 16, 100])):
        platform.add_argument("--out", type=Path, help="JSON file")
        platform.add_argument("--runs", type=int, nargs="*", default=[1, 64, 430], help="fine-tuned side by side")
        platform.add_argument("--lists", type=int, nargs="*", default=lists, help="of a meta-training step")
        platform.add_argument("--history", type=int, nargs="+", default=[105], help="trials before fine-tuning")
    gpu.set_defaults(topology="h200", products="float32", streamed=False, mesh=[])
    tpu.add_argument("--topology", default="v5e:2x2", help="chips and their grid (%(default)s)")
    tpu.add_argument("--products", default="float32", help="of the model (%(default)s)")
    tpu.add_argument("--streamed", action="store_true", help="rows of the lists come from the host")
    tpu.add_argument("--mesh", nargs="*", default=[], metavar="RxC", help="and over so many of its chips")
    return parser


if __name__ == "__main__":
    sys.exit(main())
