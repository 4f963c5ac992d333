"""Fine-tuning for TPUs: members share the lanes, and the parameters of a run stay in the chip's memory for all epochs.

A TPU computes on rows of 128 lanes, and its compiler gives every array an innermost dimension of 128. Layers are 32
wide here, so that their arrays would be three quarters empty, in memory and in computations. Therefore four members
share a row, and a layer of four members is one product with a block-diagonal matrix, which fills the unit for products.
The parameters of a group of members (172 kB for the default model, three times that with Adam's moments) stay in the
chip's fast memory for all epochs; the main memory supplies the trials once, and the draws of each epoch.

`layout` maps parameters to lanes, `epoch` computes a gradient, `kernel` is the loop.
"""

from dre_jax.methods.dre.backends.tpu.kernel import take_steps, why_not

__all__ = ["take_steps", "why_not"]
