"""Samples of Gaussian processes with Matern 5/2 from random Fourier features (Rahimi and Recht 2007)."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Key

from dre_jax.gp.regression import matmul

N_FEATURES = 512
"""Random Fourier features of a sample."""


def matern52_frequencies(key: Key[Array, ""], n_columns: int, count: int) -> Float[Array, "{n_columns} {count}"]:
    """Draws frequencies of random Fourier features of Matern 5/2.

    The spectral density is a multivariate t of 5 degrees of freedom (Rasmussen and Williams 2006, equation 4.15).
    """
    numbers = jax.random.normal(key, (5 + n_columns, count))
    chi_squared = jnp.sum(numbers[:5] ** 2, axis=0, keepdims=True)
    return numbers[5:] * jnp.sqrt(5.0 / chi_squared)


def sample_matern52(
    n_columns: int, variance: Float[Array, ""], key: Key[Array, ""]
) -> Callable[[Float[Array, "n D"]], Float[Array, " n"]]:
    """Samples a function with mean zero and ``variance`` times `matern52` as its covariance."""
    frequency_key, phase_key, weight_key = jax.random.split(key, 3)
    frequencies = matern52_frequencies(frequency_key, n_columns, N_FEATURES)
    phases = jax.random.uniform(phase_key, (1, N_FEATURES), maxval=2.0 * math.pi)
    weights = jax.random.normal(weight_key, (N_FEATURES,)) * jnp.sqrt(2.0 * variance / N_FEATURES)
    return lambda rows: matmul(jnp.cos(matmul(rows, frequencies) + phases), weights)
