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
    boxes = hv.decompose(values, np.ones(60, bool), np.full(3, -0.1))
    assert boxes.where.sum() <= 121


@pytest.mark.parametrize("m", [2, 3, 4])
def test_boxes_are_what_a_front_leaves(m):
    """Each point of a grid that no value dominates is in one box, others in none; with ties and empty slots."""
    rng = np.random.default_rng(m)
    axis = np.arange(-0.5, 7.0)
    grid = np.stack(np.meshgrid(*[axis] * m, indexing="ij"), -1).reshape(-1, m)
    compiled = jax.jit(hv.decompose)
    for n in (0, 1, 5, 12):
        values, where = rng.integers(-1, 7, (12, m)).astype(float), np.arange(12) < n
        is_free = ~(values[None, :n] >= grid[:, None]).all(-1).any(1) & (grid > 0.0).all(1)
        for boxes in (hv.decompose(values, where, np.zeros(m)), compiled(values, where, np.zeros(m))):
            boxes = jax.tree.map(np.asarray, hv.with_slots(boxes, 1 + int(boxes.where.sum())))
            low, high = (boxes.thresholds[np.arange(m), side][boxes.where] for side in (boxes.lower, boxes.upper))
            inside = (grid[:, None] >= low).all(-1) & (grid[:, None] < high).all(-1)
            np.testing.assert_array_equal(inside.sum(axis=1), is_free)


@pytest.mark.parametrize("m", [2, 3])
def test_the_improvement_is_the_mean_over_draws(m):
    """Of mixtures of two Gaussians, with empty slots; a draw's improvement is a difference of two hypervolumes."""
    rng = np.random.default_rng(m)
    front, reference = rng.uniform(0.0, 1.0, (6, m)), np.full(m, -0.3)
    front = front[~hv.dominates(front).any(axis=0)]
    mean, deviation = rng.uniform(-0.5, 1.5, (2, m, 3, 2))
    deviation = 0.2 + 0.2 * deviation**2
    weight = np.array([0.3, 0.7])
    boxes = hv.decompose(front, np.ones(len(front), bool), reference)
    more = np.vstack([front, rng.uniform(2.0, 3.0, (3, m))])
    padded = hv.with_slots(hv.decompose(more, np.arange(len(more)) < len(front), reference), 40)
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
    front = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    boxes = jax.tree.map(jnp.asarray, hv.decompose(front, np.ones(3, bool), np.full(2, -0.1)))

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
