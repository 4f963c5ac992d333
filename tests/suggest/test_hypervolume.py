"""Hypervolumes against grids, and their expected improvement against Monte Carlo."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.search.history import Components
from dre_jax.suggest import hypervolume as hv


def grid_volume(values, reference, top, cells):
    """The share of the cells of a grid whose centres are dominated: exact for values on the grid."""
    axes = [low + (np.arange(cells) + 0.5) * (high - low) / cells for low, high in zip(reference, top, strict=True)]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(reference))
    dominated = (values[None] >= centres[:, None]).all(-1).any(1)
    return dominated.mean() * np.prod(np.subtract(top, reference))


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 3, 12])
def test_the_hypervolume_is_that_of_a_grid(m, n):
    values = np.random.default_rng(n).integers(-1, 8, (n, m)).astype(float)  # ties, and some below the reference
    assert hv.hypervolume(values, np.zeros(m)) == pytest.approx(grid_volume(values, [0] * m, [8] * m, 8))


def inclusion_exclusion(values, reference):
    """The volume of a union of boxes: the sum over all sets of boxes of the volume that they share, with signs."""
    sets = itertools.chain.from_iterable(itertools.combinations(values, k + 1) for k in range(len(values)))
    return sum((-1) ** (len(boxes) + 1) * np.prod(np.maximum(np.min(boxes, 0) - reference, 0.0)) for boxes in sets)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_hypervolume_of_any_values_is_that_of_a_union_of_boxes(m):
    rng = np.random.default_rng(m)
    for n in (1, 4, 8):
        values, reference = rng.normal(size=(n, m)), rng.normal(-1.0, 1.0, m)
        volume = hv.hypervolume(values, reference)
        assert volume == pytest.approx(inclusion_exclusion(values, reference), rel=1e-9, abs=1e-12)
        order, objectives = rng.permutation(n), rng.permutation(m)
        assert hv.hypervolume(values[order][:, objectives], reference[objectives]) == pytest.approx(volume, abs=1e-12)
        assert hv.hypervolume(np.vstack([values, values[:1]]), reference) == pytest.approx(volume, abs=1e-12)
        more = hv.hypervolume(np.vstack([values, rng.normal(size=m)]), reference)
        assert more >= volume - 1e-12
        assert hv.hypervolume(values + 0.1, reference) >= volume - 1e-12


def test_three_objectives_leave_few_boxes():
    values = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    assert len(hv.decompose(values, np.full(3, -0.1)).where) <= 121


@pytest.mark.parametrize("m", [2, 3])
def test_the_improvement_is_the_mean_over_draws(m):
    """Of mixtures of two Gaussians, with empty slots; a draw's improvement is a difference of two hypervolumes."""
    rng = np.random.default_rng(m)
    front, reference = rng.uniform(0.0, 1.0, (6, m)), np.full(m, -0.3)
    front = front[~hv.dominates(front).any(axis=0)]
    mean, deviation = rng.uniform(-0.5, 1.5, (2, m, 3, 2))
    deviation = 0.2 + 0.2 * deviation**2
    weight = np.array([0.3, 0.7])
    boxes = hv.decompose(front, reference)
    padded = hv.pad_boxes(boxes, boxes.thresholds.shape[1] + 3, len(boxes.where) + 4)
    with jax.enable_x64(True):
        parts = [Components(*map(jnp.asarray, (np.log(weight), *two))) for two in zip(mean, deviation, strict=True)]
        excess = lambda one: jnp.stack(list(map(hv.log_expected_excess, parts, one[0])))  # noqa: E731
        improvement = jax.jit(lambda one: jnp.exp(hv.log_hypervolume_improvement(one, excess(one))))
        values, same = map(improvement, jax.tree.map(jnp.asarray, (boxes, padded)))
    np.testing.assert_allclose(values, same, rtol=1e-12)
    before = hv.hypervolume(front, reference)
    for i in range(3):
        k = rng.choice(2, (500, m), p=weight)
        draws = rng.normal(mean[range(m), i, k], deviation[range(m), i, k])
        gains = [hv.hypervolume(np.vstack([front, y]), reference) - before for y in draws]
        assert values[i] == pytest.approx(np.mean(gains), abs=5 * np.std(gains) / len(gains) ** 0.5)


def test_far_candidates_have_finite_values_and_gradients():
    """Small deviations and means far below the front, where improvements underflow in float32."""
    boxes = jax.tree.map(jnp.asarray, hv.decompose(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), np.full(2, -0.1)))

    def value(mean, deviation):
        parts = Components(jnp.zeros(1), mean[:, None], deviation[:, None])
        excess = jnp.stack([hv.log_expected_excess(parts, t) for t in boxes.thresholds])
        return hv.log_hypervolume_improvement(boxes, excess).sum()

    value_and_gradients = jax.jit(jax.value_and_grad(value, (0, 1)))
    for deviation in (1e-5, 1e-3, 10.0):
        mean = jnp.array([-20.0, 0.0, 0.5, 1.0, 30.0])
        result, gradients = value_and_gradients(mean, jnp.full(5, deviation))
        assert jnp.isfinite(result)
        assert all(jnp.isfinite(g).all() for g in gradients)
