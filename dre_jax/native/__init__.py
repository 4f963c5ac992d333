"""Two inner loops in C++ for CPUs, compiled once on the machine that they run on; functions of plain arrays.

`train_steps`: a core's cache holds one member with its gradient and moments, but not an ensemble. XLA takes every
member through a step before the next; here a member goes through all steps before the next member, in products that
keep their results in registers. `draw_without_replacement`: Floyd's algorithm has a loop that XLA goes through slot by
slot.

Where they are used (`dre_jax.methods.dre.native_steps`, `dre_jax.data.sampling`) stands the way in JAX too: it is the
oracle, and what runs on accelerators, without a C++ compiler, and for what the C++ does not know.
``DRE_JAX_NATIVE=0`` turns this off. `jax.export` refuses what it cannot vouch for, these calls among it, unless it is
told of `CALLS` or they are off.
"""

from dre_jax.native.build import CALLS, compiler_version
from dre_jax.native.ops import Lists, draw_without_replacement, train_steps
from dre_jax.native.trial import available, backend, decision, with_backend

__all__ = [
    "CALLS",
    "Lists",
    "available",
    "backend",
    "compiler_version",
    "decision",
    "draw_without_replacement",
    "train_steps",
    "with_backend",
]
