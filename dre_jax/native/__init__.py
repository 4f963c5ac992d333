"""Two inner loops in C++ for CPUs, compiled on the machine that runs them; functions of plain arrays.

`train_steps`: the cache of a core holds one member with its gradient and moments, but not an ensemble. XLA computes a
step of all members before the next step. This loop computes all steps of one member before the next member, and its
products keep their results in registers. `draw_without_replacement`: Floyd's algorithm has a loop that XLA processes
slot by slot.

The callers (`dre_jax.methods.dre.backends.cpu`, `dre_jax.data.sampling`) also have both loops in JAX. These are the
oracles, and run on accelerators, without a C++ compiler, and for settings that the C++ does not support.
``DRE_JAX_NATIVE=0`` turns the C++ off. `jax.export` refuses custom calls, unless it gets `CALLS` or the C++ is off.
"""

from dre_jax.native.build import CALLS, compiler_version
from dre_jax.native.ops import Lists, draw_without_replacement, train_steps
from dre_jax.native.trial import available, decision

__all__ = [
    "CALLS",
    "Lists",
    "available",
    "compiler_version",
    "decision",
    "draw_without_replacement",
    "train_steps",
]
