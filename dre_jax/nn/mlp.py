"""Multilayer perceptrons of the methods other than DRE."""

import math
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Key

from dre_jax.checks import AnyLayers, AtLeastOne, Checked
from dre_jax.nn.initial import add_inputs, draw

Activation = Literal["tanh", "relu"]
MLPParams = dict[str, Array]
"""``<layer>_kernel`` [inputs, outputs] and ``<layer>_bias`` [outputs] of each layer."""

_ACTIVATIONS = {"tanh": jnp.tanh, "relu": jax.nn.relu}
_UNIFORM_DEVIATION = 1.0 / math.sqrt(12.0)


@dataclass(frozen=True, kw_only=True)
class MLPConfig(Checked):
    """Sizes of a perceptron with a linear output.

    Raises `ConfigError` if a size is not positive or a name is unknown.
    """

    hidden: AnyLayers
    """Widths of the hidden layers; empty for a linear map."""
    activation: Activation = "tanh"
    """Activation function after every hidden layer."""
    outputs: AtLeastOne[int] = 1
    """Width of the output."""


def shapes(config: MLPConfig, n_columns: int) -> dict[str, jax.ShapeDtypeStruct]:
    """Returns the shapes of the parameters for inputs of D columns."""
    widths = (n_columns, *config.hidden, config.outputs)
    names = [*(f"hidden_{i}" for i in range(len(config.hidden))), "out"]
    layer_shapes = {}
    for name, inputs, outputs in zip(names, widths, widths[1:], strict=False):
        layer_shapes[f"{name}_kernel"] = jax.ShapeDtypeStruct((inputs, outputs), jnp.float32)
        layer_shapes[f"{name}_bias"] = jax.ShapeDtypeStruct((outputs,), jnp.float32)
    return layer_shapes


def config_of(params: MLPParams, activation: Activation) -> MLPConfig:
    """Returns the configuration of one network, with the sizes of its parameters.

    Example:
      >>> config_of(init(MLPConfig(hidden=(5, 4)), 3, jax.random.key(0)), "tanh").hidden
      (5, 4)
    """
    hidden = tuple(params[f"hidden_{i}_kernel"].shape[-1] for i in range(len(params) // 2 - 1))
    return MLPConfig(hidden=hidden, activation=activation, outputs=params["out_kernel"].shape[-1])


def init(config: MLPConfig, n_columns: int, key: Key[Array, ""]) -> MLPParams:
    """Returns random parameters."""
    return draw(shapes(config, n_columns), "lecun_normal", key)


def init_features(config: MLPConfig, n_columns: int, key: Key[Array, ""]) -> MLPParams:
    """Returns random parameters of a ReLU network, whose outputs differ between rows about as much as a column does."""
    # A ReLU halves the second moment, so weights behind one are larger by sqrt(2) (He et al. 2015).
    params = init(config, n_columns, key)
    return {name: a if name == _first_kernel(params) else a * math.sqrt(2.0) for name, a in params.items()}


def _first_kernel(params: MLPParams) -> str:
    return "hidden_0_kernel" if "hidden_0_kernel" in params else "out_kernel"


def pad_inputs(params: MLPParams, n_columns: int, width: int) -> MLPParams:
    """Returns one or several networks of D columns for more columns; columns of zeros do not change the outputs."""
    first = _first_kernel(params)
    return {**params, first: add_inputs(params[first], n_columns, width - n_columns)}


def fix_columns(params: MLPParams, is_fixed: Bool[Array, " D"], values: Float[Array, " D"]) -> MLPParams:
    """Returns one or several networks that ignore some columns, with the outputs at some values there.

    The values are as the network reads them; those of other columns are not used.
    """
    kernel_name = _first_kernel(params)
    bias_name = kernel_name.replace("kernel", "bias")
    kernel = params[kernel_name]
    shift = jnp.where(is_fixed, values, 0.0).astype(kernel.dtype) @ kernel
    return {**params, kernel_name: jnp.where(is_fixed[:, None], 0.0, kernel), bias_name: params[bias_name] + shift}


def standard_columns(x: Float[Array, "*n D"], where: Bool[Array, "*n"] | None = None) -> Float[Array, "*n D"]:
    """Standardises columns of rows, or of a row, as if they were uniform in [0, 1]; empty slots become 0.

    The transformation is the same for every history, because a column may be constant in a short history.
    """
    standard = (x - 0.5) / _UNIFORM_DEVIATION
    return standard if where is None else jnp.where(where[..., None], standard, 0.0)


def features(
    config: MLPConfig,
    params: MLPParams,
    x: Float[Array, "n D"],
    shared: Float[Array, " C"] | None = None,
    *,
    dropout: float = 0.0,
    key: Key[Array, ""] | None = None,
) -> Float[Array, "n width"]:
    """Returns the outputs of the last hidden layer.

    ``shared`` holds additional inputs that are equal for all rows. With a key, hidden units have the dropout rate
    ``dropout``.
    """
    activation = _ACTIVATIONS[config.activation]
    for i in range(len(config.hidden)):
        x = activation(_layer(params, f"hidden_{i}", x, shared if i == 0 else None))
        if dropout > 0 and key is not None:
            keep_mask = jax.random.bernoulli(jax.random.fold_in(key, i), 1.0 - dropout, x.shape)
            x = jnp.where(keep_mask, x / (1.0 - dropout), 0.0)
    return x


def apply(
    config: MLPConfig,
    params: MLPParams,
    x: Float[Array, "n D"],
    shared: Float[Array, " C"] | None = None,
    *,
    dropout: float = 0.0,
    key: Key[Array, ""] | None = None,
) -> Float[Array, "n {config.outputs}"]:
    """Returns the outputs of the network; arguments as in `features`."""
    activations = features(config, params, x, shared, dropout=dropout, key=key)
    return _layer(params, "out", activations, None if config.hidden else shared)


def _layer(
    params: MLPParams, name: str, x: Float[Array, "n inputs"], shared: Float[Array, " C"] | None
) -> Float[Array, "n outputs"]:
    kernel, bias = params[f"{name}_kernel"], params[f"{name}_bias"]
    if shared is not None:
        # Shared inputs are multiplied once, not once for each row.
        kernel, bias = kernel[: x.shape[-1]], bias + shared @ kernel[x.shape[-1] :]
    return x @ kernel + bias[None, :]
