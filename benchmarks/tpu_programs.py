"""The loops compiled for a TPU, without a TPU: ``python -m benchmarks.tpu_programs [--out FILE.json]``.

XLA compiles for a TPU that is described to it. The compiler is in a package that needs no TPU::

    pip install --no-deps "libtpu==0.0.42.*"    # the version that jax[tpu] names

It tells kernels, copies between the memories, exchanges between chips, temporaries, and how arrays lie: on a TPU the
innermost dimension comes in lanes of 128, so that an array 32 wide takes four times its bytes. ``cycles`` is the sum of
the compiler's own estimates of the kernels; of the library's own kernel, the cycles of its schedule. The least time of
a turn is by arithmetic, not by measurement. ``DRE_JAX_PALLAS=0`` has XLA compile the scan over epochs.

What compiling takes is told without fine-tuning, whose schedules the compiler has to write out::

    python -m benchmarks.tpu_programs --runs --lists --protocol    # all of HPO-B
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.suite import bundles

KERNEL = "fit_members"
"""The library's own."""

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
"""Without them the compiler looks for the TPU's metadata server, and only one process may load it."""


class Chip(NamedTuple):
    """Peak rates of a chip."""

    bytes_per_s: float
    clock_hz: float


CHIPS = {"v5e": Chip(819e9, 1.5e9), "v6e": Chip(1640e9, 1.75e9)}
"""Google's figures; the clock is that at which the products come to the rate that it states."""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    given = _parser().parse_args(arguments)
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder:
        if given.runs:  # of the kernel of fine-tuning; writing them doubles the time of compiling
            os.environ["LIBTPU_INIT_ARGS"] = bundles.arguments(Path(folder))
        return _compile(given, arguments, Path(folder))


def _compile(given: argparse.Namespace, arguments: list[str], folder: Path) -> int:
    from jax.sharding import NamedSharding, PartitionSpec

    from benchmarks.suite import environment, ours
    from benchmarks.suite.loops import loops, on_meshes
    from benchmarks.suite.protocol import whole_protocol
    from benchmarks.suite.suggestions import suggestions

    model = replace(ours.default_model(), products=given.products)
    try:
        mesh = described_mesh(given.topology)
    except (RuntimeError, ImportError) as error:
        reason = str(error).splitlines()[0]
        print(f"the package libtpu is needed, without a TPU (see --help): {reason}", file=sys.stderr)
        return 2
    about = environment.describe("benchmarks.tpu_programs", arguments)
    described = loops(model, given.runs, given.lists, given.history, streamed=given.streamed)
    chip = CHIPS[given.topology.partition(":")[0]]
    found = rows(described, NamedSharding(mesh, PartitionSpec()), chip, folder)
    one = described_mesh(given.topology, (1, 1), ("rows", "columns"))
    meshes = [
        described_mesh(given.topology, tuple(map(int, shape.split("x"))), ("rows", "columns")) for shape in given.mesh
    ]
    for chips in meshes:
        shared_out = on_meshes(model, chips, lists=16, runs=chips.size, rows=64)
        found += rows(shared_out, NamedSharding(chips, PartitionSpec()), chip, folder)
    for chips in (meshes or [one]) if given.protocol else ():
        found += rows(whole_protocol(given.protocol, chips), NamedSharding(chips, PartitionSpec()), chip, folder)
    found += rows(suggestions(given.methods, [64, 430], 104), NamedSharding(mesh, PartitionSpec()), chip, folder)
    device = str(mesh.devices.flat[0].device_kind)
    environment.write(given.out, {**about, "platform": "described", "device": device}, found)
    return 0


def rows(loops: Iterable[Any], on: Any, chip: Chip, schedules: Path) -> list[dict[str, Any]]:
    """The turns of loops; each is printed as soon as it is compiled. The compiler writes its schedules to a folder."""
    from benchmarks.suite.loops import turn_of

    found = []
    for loop in loops:
        row = turn_of(loop, on)
        cycles = bundles.take(schedules, KERNEL)
        if loop.turns and cycles:
            row["cycles"] = cycles * loop.walks
        found.append({**row, "least_s": least_seconds(row, chip) if loop.turns else None})
        print(", ".join(f"{key} {value}" for key, value in found[-1].items()), flush=True)
    return found


def described_mesh(topology: str, shape: Sequence[int] = (1,), names: Sequence[str] = ("devices",)) -> Any:
    """A mesh of chips of a described TPU, such as "v5e:2x2". Raises `RuntimeError` without libtpu."""
    import math

    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh

    devices = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    return Mesh(np.array(devices[: math.prod(shape)]).reshape(shape), tuple(names))


def least_seconds(row: dict[str, Any], chip: Chip) -> float:
    """The longer of what the bytes in the main memory and the estimated cycles of a turn need.

    Example:
      >>> least_seconds({"main_bytes": 819_000_000, "cycles": 3_000}, CHIPS["v5e"])
      0.001
    """
    return float(max(row["main_bytes"] / chip.bytes_per_s, row["cycles"] / chip.clock_hz))


def _parser() -> argparse.ArgumentParser:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tpu_programs", description=__doc__, formatter_class=style
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--topology", default="v5e:2x2", help="chips and their grid (%(default)s)")
    parser.add_argument("--runs", type=int, nargs="*", default=[1, 64, 430], help="fine-tuned side by side")
    parser.add_argument("--lists", type=int, nargs="*", default=[1, 16, 100], help="a step of meta-training")
    parser.add_argument("--history", type=int, nargs="+", default=[105], help="trials that fine-tuning knows")
    parser.add_argument("--products", default="float32", help="of the model (%(default)s)")
    parser.add_argument("--streamed", action="store_true", help="rows of the lists come from the host")
    parser.add_argument("--mesh", nargs="*", default=[], metavar="RxC", help="and over so many of its chips")
    parser.add_argument(
        "--protocol", nargs="?", const="dre", metavar="NAME", help="HPO-B's 430 runs by a method, on the meshes"
    )
    parser.add_argument("--methods", nargs="*", default=[], metavar="NAME", help="suggestions for 64 and 430 runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
