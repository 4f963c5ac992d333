"""Training for NVIDIA GPUs: all steps of all runs and members are one launch.

In XLA's scan, a step of such small networks is a chain of some sixty launches, each of which takes microseconds. Here a
block of threads trains one member of one run from its first step to its last: weights and activations in shared memory,
Adam's moments in registers, products on tensor cores. Runs, search spaces and members are the grid.

`plan.py` shares out a multiprocessor's memory. `kernel.cu` and the `.cuh` files, one a role, are the kernel, which
`compile.py` compiles with NVRTC. XLA calls `launch.cc`, which `library.py` builds, and `steps.py` is the function in
JAX. `launch_check.py` tries the kernel on a device, and `decision.py` decides whether the kernel is used, and for which
steps.
"""

from dre_jax.methods.dre.backends.cuda.compile import fingerprint
from dre_jax.methods.dre.backends.cuda.decision import decision, precision, steps_for, why_not
from dre_jax.methods.dre.backends.cuda.library import refused_kernels

__all__ = ["decision", "fingerprint", "precision", "refused_kernels", "steps_for", "why_not"]
