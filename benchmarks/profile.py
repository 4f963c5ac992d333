"""Where the time of a fine-tuning epoch goes that XLA compiles: ``python -m benchmarks.profile [--history N]``.

One run on one core, as in a batch of runs on a CPU, without the C++ of `dre_jax.native`. JAX's profiler times every
kernel of the compiled program; the program says which part of the source each belongs to.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from benchmarks.suite.programs import holds_product, parse

# Of the names that JAX gives to operations, the first that occurs decides.
_PARTS = (
    ("matrix products", r"dot_general|/transpose\)*$|ynn_dot"),
    ("networks: biases, ReLU, sums, copies", r"_Scorer|_DeepSet"),
    ("loss", r"jvp\(\)|jvp\(jit|broadcast_in_dim|reduce|take_along|_where"),
    ("Adam", r"closed_call/(add|sub|mul|div|sqrt)$|body/(add|sub|mul|div|sqrt)$"),
)
_KERNELS = {"fusion", "dot", "copy", "custom-call", "reduce"}
_OTHER = "rows of the epoch, loop, copies"


def part_of(name: str) -> str:
    """The part of an epoch that an operation belongs to.

    Example:
      >>> part_of("jit(f)/while/body/closed_call/jvp(vmap(_Scorer))/dot_general")
      'matrix products'
      >>> part_of("jit(f)/while/body/closed_call/sub")
      'Adam'
    """
    return next((part for part, pattern in _PARTS if re.search(pattern, name)), _OTHER)


def parts_of_kernels(program: str) -> dict[str, str]:
    """Kernel -> part, from the text of a compiled program; a fusion with a product in it is a product."""
    parsed, found = parse(program), {}
    for one in chain.from_iterable(parsed.computations.values()):
        if one.opcode not in _KERNELS:
            continue
        if one.is_product or holds_product(parsed, one):
            found[one.name] = part_of("dot_general")
        elif one.name.startswith("ynn_fusion"):  # a sum over rows: the gradient of a bias
            found[one.name] = part_of("_Scorer")
        else:
            found[one.name] = part_of(one.source)
    return found


def seconds_of_kernels(folder: Path) -> Counter[str]:
    """Kernel -> seconds, from what JAX's profiler wrote."""
    from jax.profiler import ProfileData

    found: Counter[str] = Counter()
    for path in folder.rglob("*.xplane.pb"):
        for plane in ProfileData.from_file(str(path)).planes:
            for line in plane.lines:
                for event in line.events:
                    found[event.name] += event.duration_ns * 1e-9
    return found


def shares(kernels: Mapping[str, float], parts: Mapping[str, str]) -> dict[str, float]:
    """Part -> share of the time of all kernels; the longest first.

    Example:
      >>> shares({"dot.3": 3.0, "add.1": 1.0, "python": 9.0}, {"dot.3": "matrix products", "add.1": "Adam"})
      {'matrix products': 0.75, 'Adam': 0.25}
    """
    total: Counter[str] = Counter()
    for name, seconds in kernels.items():
        if name in parts:
            total[parts[name]] += seconds
    whole = sum(total.values())
    return {part: seconds / whole for part, seconds in total.most_common()}


def main() -> None:
    """Prints the shares."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--history", type=int, default=105)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=200)
    given = parser.parse_args()
    os.environ["JAX_NUM_CPU_DEVICES"] = "1"
    os.environ["DRE_JAX_NATIVE"] = "0"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"
    import time

    import jax

    from benchmarks.suite import floors, ours

    model = ours.default_model()
    jitted, inputs = ours.fine_tuning_program(model, 1, given.history, given.columns, given.epochs)
    compiled = jitted.lower(*inputs).compile()
    work = lambda: jax.block_until_ready(compiled(*inputs))  # noqa: E731
    timed = []
    for _ in range(10):
        begun = time.perf_counter()
        work()
        timed.append(time.perf_counter() - begun)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            work()
        kernels = seconds_of_kernels(Path(folder))
    support = max(1, given.history // 5)
    flops = floors.products(model, given.columns, support, given.history - support)
    epoch = min(timed) / given.epochs
    print(f"{epoch * 1e6:.0f} us an epoch, {flops / 1e6:.1f} MFLOP of products: {flops / epoch / 1e9:.0f} GFLOP/s")
    found = shares(kernels, parts_of_kernels(compiled.as_text()))
    for part, share in found.items():
        rate = f", {flops / (epoch * share) / 1e9:.0f} GFLOP/s while at it" if part == "matrix products" else ""
        print(f"{100 * share:5.1f} %  {part}{rate}")


if __name__ == "__main__":
    main()
