"""Expected hypervolume improvement of four objectives and more, by rays from the reference point.

The boxes of `dre_jax.suggest.hypervolume` are too many for four objectives and more. In polar coordinates around the
reference point r, the hypervolume is a mean over directions d, uniform on the positive part of the sphere (Deng and
Zhang 2019; Golovin and Zhang 2020), with c_M the volume of that part of the unit ball:

    HV = c_M E_d[max over y of s(y; d)^M],    s(y; d) = min_m (y_m - r_m) / d_m, or 0 if it is negative.

The ray of a direction leaves the front at t* = max s(y; d). For independent objectives, the expected improvement is

    EHVI = c_M E_d[integral from t* to infinity of M t^(M - 1) prod_m P(y_m > r_m + d_m t) dt].

The mean is over a Sobol' set of directions, the same for all candidates, and the integrals are Gauss-Legendre rules
between the bounds that matter to a candidate. For mixtures of Gaussians, each ray has one component of each objective,
drawn by the same set, so the cost does not grow with the components.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Float64

from dre_jax.runtime.arrays import AnyArray, namespace, special
from dre_jax.search.history import Components
from dre_jax.space.sobol import sobol_points

_RAYS, _NODES = 512, 5
_SURE = 3.0  # deviations above a point at which a value is taken to exceed it
_DEPTH = 7.0  # natural logarithm by which the survival falls until an integral ends
_SMALLEST_DEVIATION = 1e-4  # of the extent of the front
_LEAST_COORDINATE = 1e-4  # of a direction
_LOG_TINY = -1e30


class Front(NamedTuple):
    """A front of n points of M objectives above a reference point."""

    thresholds: Float[AnyArray, "M T"]
    """By objective, the reference point, a coordinate above it that is the unit of length, and those of the points:
    T = n + 2."""
    where: Bool[AnyArray, " n"]
    """The filled slots."""


class Rays(NamedTuple):
    """What a front leaves of the rays from a reference point."""

    reference: Float[Array, " M"]
    extent: Float[Array, " M"]
    """The unit of length in each objective."""
    start: Float[Array, " J"]
    """Where the rays leave the front: the distance from the reference point in these units."""


class _Directions(NamedTuple):
    coordinates: Float64[np.ndarray, "J M"]
    """Uniform on the sphere, positive."""
    shares: Float64[np.ndarray, "J M"]
    """Uniform in [0, 1): which components the rays have."""


@cache
def _directions(m: int) -> _Directions:
    """Returns directions for m objectives, the same in all processes."""
    points = np.clip(sobol_points(_RAYS, 2 * m, 0).astype(np.float64), 1e-6, 1.0 - 1e-6)
    normal = np.abs(special(points).ndtri(points[:, :m]))
    coordinates = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return _Directions(np.maximum(coordinates, _LEAST_COORDINATE), points[:, m:])


def rays_beyond(thresholds: Float[Array, "M T"], where: Bool[Array, " n"]) -> Rays:
    """Returns the rays beyond a front; see `Front`."""
    reference, top, points = thresholds[:, 0], thresholds[:, 1], thresholds[:, 2:]
    extent = jnp.maximum(top - reference, jnp.finfo(top.dtype).tiny)
    scaled = (points - reference[:, None]) / extent[:, None]
    distance = _distances(scaled, jnp.asarray(_directions(len(reference)).coordinates, points.dtype))
    return Rays(reference, extent, jnp.max(jnp.where(where[None, :], distance, 0.0), axis=1, initial=0.0))


def _distances(points: Float[AnyArray, "M n"], directions: Float[AnyArray, "J M"]) -> Float[AnyArray, "J n"]:
    """Returns how far the rays of directions go in the boxes between the reference point, 0, and points."""
    xp = namespace(points)
    distance = xp.full((len(directions), points.shape[1]), xp.inf, points.dtype)
    for direction, coordinates in zip(directions.T, points, strict=True):
        distance = xp.minimum(distance, coordinates[None, :] / direction[:, None])
    return distance


def exclusive_volumes_by_rays(
    front: Float64[np.ndarray, "n M"], reference: Float64[np.ndarray, " M"]
) -> Float64[np.ndarray, " n"]:
    """Returns by how much the hypervolume of a front falls without each of its points, as a mean over rays."""
    n, m = front.shape
    powers = np.maximum(_distances((front - reference).T, _directions(m).coordinates), 0.0) ** m
    first, ordered = powers.argmax(axis=1), np.sort(np.pad(powers, ((0, 0), (1, 0))), axis=1)
    volumes = np.bincount(first, ordered[:, -1] - ordered[:, -2], n)
    return np.exp(_log_ball(m)) * volumes / _RAYS


def _log_ball(m: int) -> float:
    """Returns the logarithm of the volume of the positive part of the unit ball."""
    return 0.5 * m * math.log(math.pi) - m * math.log(2.0) - math.lgamma(0.5 * m + 1.0)


def log_polar_improvement(rays: Rays, predictions: list[Components]) -> Float[Array, " N"]:
    """Returns the log expected hypervolume improvement of candidates, whose objectives have M ``predictions``."""
    m = len(predictions)
    scores = [_along_rays(rays, predictions[i], i) for i in range(m)]
    improvement = _log_improvements(scores, rays.start[None, :])
    log_mean = jax.nn.logsumexp(improvement, axis=1) - math.log(_RAYS)
    return log_mean + _log_ball(m) + jnp.sum(jnp.log(rays.extent))


def _along_rays(rays: Rays, components: Components, i: int) -> tuple[Float[Array, "N J"], Float[Array, "N J"]]:
    """Returns means and deviations of where the rays reach the value of objective i, under each ray's component."""
    dtype = components.mean.dtype
    coordinates, shares = (jnp.asarray(part[:, i], dtype) for part in _directions(len(rays.reference)))
    weight = jnp.exp(components.log_weight)
    last = jnp.cumsum(weight) / jnp.sum(weight)
    is_last = jnp.arange(len(last)) == len(last) - 1
    below = shares[None, :] < jnp.where(is_last, jnp.inf, last)[:, None]
    chosen = (below & ~jnp.pad(below, ((1, 0), (0, 0)))[:-1]).astype(dtype)
    mean = (components.mean - rays.reference[i]) / rays.extent[i]
    deviation = jnp.maximum(components.deviation / rays.extent[i], _SMALLEST_DEVIATION)
    along = (jnp.matmul(values, chosen, precision=lax.Precision.HIGHEST) for values in (mean, deviation))
    mean, deviation = (values / coordinates[None, :] for values in along)
    return mean, deviation


def _log_improvements(
    scores: list[tuple[Float[Array, "N J"], Float[Array, "N J"]]], start: Float[Array, "1 J"]
) -> Float[Array, "N J"]:
    """Returns log expected improvements of t^M along rays, for the least t of M Gaussians."""
    m = len(scores)
    sure = scores[0][0] - _SURE * scores[0][1]
    for mean, deviation in scores[1:]:
        sure = jnp.minimum(sure, mean - _SURE * deviation)
    rise = jnp.maximum(sure - start, 0.0)  # by which a ray is sure to be longer
    low = start + rise
    head = rise * sum(low**i * start ** (m - 1 - i) for i in range(m))  # low^M - start^M
    z = [(low - mean) / deviation for mean, deviation in scores]
    width = jnp.full_like(low, jnp.inf)
    for at, (_, deviation) in zip(z, scores, strict=True):
        width = jnp.minimum(width, deviation * _reach(at))
    slopes = [width / deviation for _, deviation in scores]
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    terms = []
    for node, weight in zip((0.5 + 0.5 * nodes).tolist(), (0.5 * weights).tolist(), strict=True):
        factor, exponent = m * weight * width * (low + width * node) ** (m - 1), jnp.zeros_like(low)
        for at, slope in zip(z, slopes, strict=True):
            mantissa, depth = _survival(at + slope * node)
            factor, exponent = factor * mantissa, exponent + depth
        terms.append((factor, exponent))
    # Exponents increase along a ray. The head is positive only where the first is small.
    least = terms[0][1]
    total = head * jnp.exp(jnp.where(head > 0.0, least, 0.0))
    for factor, exponent in terms:
        total += factor * jnp.exp(least - exponent)
    positive = total > 0.0
    return jnp.where(positive, jnp.log(jnp.where(positive, total, 1.0)) - least, _LOG_TINY)


def _reach(z: Float[Array, "N J"]) -> Float[Array, "N J"]:
    """Returns by how much z must increase until the survival of a standard Gaussian is negligible.

    It is sqrt(z^2 + 2 depth) - z for positive z, without the difference of two large numbers.
    """
    above = jnp.maximum(z, 0.0)
    return 2.0 * _DEPTH / (jnp.sqrt(above**2 + 2.0 * _DEPTH) + above) + (above - z)


_CENTRE = 3.1
_MILLS = (1.8363833, -1.30851433, 0.62200147, -0.14962741, -0.01576463, 0.01553540)
"""Coefficients of sqrt(2 pi) exp(z^2 / 2) P(Z > z) (z + 3.1) in (z - 3.1) / (z + 3.1) for positive z, a Chebyshev fit
with a relative error of 2.4e-5."""


def _survival(z: Float[Array, "N J"]) -> tuple[Any, Any]:
    """Returns f and e with f exp(-e) = P(Z > z) of a standard Gaussian; e is 0 for negative z, z^2 / 2 for others."""
    a = jnp.abs(z)
    ratio, u = jnp.full_like(a, _MILLS[-1]), (a - _CENTRE) / (a + _CENTRE)
    for coefficient in _MILLS[-2::-1]:
        ratio = ratio * u + coefficient
    mantissa = ratio / (a + _CENTRE) / math.sqrt(2.0 * math.pi)
    depth = 0.5 * a * a
    return jnp.where(z > 0.0, mantissa, 1.0 - mantissa * jnp.exp(-depth)), jnp.where(z > 0.0, depth, 0.0)
