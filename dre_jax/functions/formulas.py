"""Test functions of optimisation, of one point each (Surjanovic and Bingham's collection has the formulas)."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array

_HARTMANN_A = {
    3: [[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]],
    6: [[10.0, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]],
}
_HARTMANN_P = {  # in units of 1e-4
    3: [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]],
    6: [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ],
}


def branin(x: Array) -> Array:
    """Returns Branin's function of a point f[2] of [-5, 10] x [0, 15] (Dixon and Szego 1978)."""
    a = x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return a**2 + 10 * (1 - 1 / (8 * math.pi)) * jnp.cos(x[0]) + 10


def hartmann(x: Array) -> Array:
    """Returns Hartmann's function of a point f[3] or f[6] of the unit cube (Dixon and Szego 1978)."""
    a = jnp.asarray(_HARTMANN_A[len(x)], x.dtype)
    p = jnp.asarray(1e-4 * np.array(_HARTMANN_P[len(x)], np.float64), x.dtype)
    bumps = jnp.exp(-jnp.sum(a * (x[None, :] - p) ** 2, axis=1))
    return -jnp.sum(bumps * jnp.asarray([1.0, 1.2, 3.0, 3.2], x.dtype))


def ackley(x: Array) -> Array:
    """Returns Ackley's function of a point f[D] of [-5, 10]^D; its gradient is finite at the optimum."""
    mean = jnp.mean(x**2)
    root = jnp.where(mean > 0.0, jnp.sqrt(jnp.where(mean > 0.0, mean, 1.0)), 0.0)
    return -20 * jnp.exp(-0.2 * root) - jnp.exp(jnp.mean(jnp.cos(2 * math.pi * x))) + 20 + math.e


def rosenbrock(x: Array) -> Array:
    """Returns Rosenbrock's function of a point f[D] of [-2, 2]^D."""
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def levy(x: Array) -> Array:
    """Returns Levy's function of a point f[D] of [-5, 5]^D."""
    w = 1 + (x - 1) / 4
    inner = (w[:-1] - 1) ** 2 * (1 + 10 * jnp.sin(math.pi * w[:-1] + 1) ** 2)
    last = (w[-1] - 1) ** 2 * (1 + jnp.sin(2 * math.pi * w[-1]) ** 2)
    return jnp.sin(math.pi * w[0]) ** 2 + jnp.sum(inner) + last


def griewank(x: Array) -> Array:
    """Returns Griewank's function of a point f[D] of [-10, 10]^D."""
    waves = jnp.prod(jnp.cos(x / jnp.sqrt(jnp.arange(1, len(x) + 1, dtype=x.dtype))))
    return jnp.sum(x**2) / 4000 - waves + 1


def styblinski_tang(x: Array) -> Array:
    """Returns Styblinski and Tang's function of a point f[D] of [-5, 5]^D."""
    return 0.5 * jnp.sum(x**4 - 16 * x**2 + 5 * x)


def bowl(x: Array) -> Array:
    """Returns a quadratic of a point f[D] of [-1, 1]^D whose columns count less and less."""
    return jnp.sum(x**2 * 0.3 ** jnp.arange(len(x), dtype=x.dtype))
