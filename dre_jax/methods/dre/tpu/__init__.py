"""Fine-tuning for TPUs: members side by side in the lanes, all epochs of a run without leaving the chip's memory.

A TPU computes on rows of 128 lanes, and its compiler gives every array an innermost dimension of so many. Layers here
are 32 wide: arrays of them are three quarters empty, in memory and at work. So four members share a row, and a layer
of four members is one product with a block-diagonal matrix, which fills the unit for products. What a group of members
consists of (172 kB for the default model, three times that with Adam's moments) stays in the chip's fast memory for
all epochs; from the main memory come the trials, once, and what an epoch draws.

`layout` says where parameters lie, `epoch` computes a gradient, `kernel` is the loop.
"""

from dre_jax.methods.dre.tpu.kernel import fit_members, passes, supports_kernel
from dre_jax.methods.dre.tpu.layout import layout_of, pack, unpack
from dre_jax.methods.dre.tpu.masks import masks_of

__all__ = ["fit_members", "layout_of", "masks_of", "pack", "passes", "supports_kernel", "unpack"]
