"""The loops as a GPU's compiler builds them, without a GPU: ``python -m benchmarks.gpu_kernels [--out FILE.json]``.

XLA compiles for an H200 that is described to it, and the program tells its kernels, its loops that the host has to look
at, and its bytes: what decides the speed of networks this small. The CUDA plugin is needed, a GPU is not::

    pip install --no-deps jax-cuda12-plugin==J jax-cuda12-pjrt==J nvidia-cuda-nvcc-cu12    # J: the version of jax

The least time of a turn is by arithmetic, not by measurement: kernels that wait for each other take some microseconds
each, however small, and bytes go through the memory at its rate.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import chain
from pathlib import Path
from typing import Any

MEMORY_BYTES_PER_S = 4.8e12
KERNEL_S = 2e-6
"""From one small kernel to the next, inside a CUDA graph."""

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
  memory_bandwidth: {int(MEMORY_BYTES_PER_S)}
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
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_kernels", description=__doc__, formatter_class=style
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--runs", type=int, nargs="*", default=[1, 64, 430], help="fine-tuned side by side")
    parser.add_argument("--lists", type=int, nargs="*", default=[1, 16], help="a step of meta-training")
    parser.add_argument("--history", type=int, nargs="+", default=[105], help="trials that fine-tuning knows")
    parser.add_argument("--methods", nargs="*", default=[], metavar="NAME", help="suggestions for 64 and 430 runs")
    parser.add_argument("--protocol", nargs="?", const="dre", metavar="NAME", help="HPO-B's 430 runs by a method")
    given = parser.parse_args(arguments)
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # it asks a driver, of which there is none
    from jax.sharding import NamedSharding, PartitionSpec

    from benchmarks.suite import environment, ours
    from benchmarks.suite.loops import loops, turn_of
    from benchmarks.suite.protocol import whole_protocol
    from benchmarks.suite.suggestions import suggestions

    try:
        mesh = described_mesh()
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        print(f"the CUDA plugin of JAX is needed, without a GPU (see --help): {reason}", file=sys.stderr)
        return 2
    about = environment.describe("benchmarks.gpu_kernels", arguments)
    found, on = [], NamedSharding(mesh, PartitionSpec())
    described = chain(  # one after the other, as a program's inputs are arrays
        loops(ours.default_model(), given.runs, given.lists, given.history),
        suggestions(given.methods, [64, 430], 104),
        whole_protocol(given.protocol, mesh) if given.protocol else (),
    )
    for loop in described:
        row = turn_of(loop, on)
        found.append({**row, "least_s": least_seconds(row) if loop.turns else None})
        print(", ".join(f"{key} {value}" for key, value in found[-1].items()), flush=True)
    environment.write(given.out, {**about, "platform": "described", "device": "NVIDIA H200"}, [], profile=found)
    return 0


def described_mesh() -> Any:
    """A mesh of the one device that is described. Raises `RuntimeError` without the plugin."""
    from jax.experimental import topologies
    from jax.sharding import Mesh

    found = topologies.get_topology_desc("h200", "cuda", target_config=H200, topology="1x1x1")
    return Mesh(found.devices, ("devices",))


def least_seconds(loop: dict[str, Any]) -> float:
    """The longer of what the kernels and the bytes of a turn need.

    Example:
      >>> least_seconds({"kernels": 50, "bytes": 10_000_000})
      0.0001
    """
    return float(max(loop["kernels"] * KERNEL_S, loop["bytes"] / MEMORY_BYTES_PER_S))


if __name__ == "__main__":
    sys.exit(main())
