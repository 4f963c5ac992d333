"""Draws from the hyperpriors against the distributions they are of, and what the evidence selects."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import softmax
from scipy.stats import kstest, norm

from dre_jax.gp.drawn_processes import draw_processes, select_processes
from dre_jax.gp.task_process import TaskProcess
from tests.gp.processes import CAPACITY, FREEDOM, GENERIC, log_density, trials_of, waves
from tests.oracles import kumaraswamy

select = jax.jit(select_processes, static_argnums=(1, 4))


def test_draws_have_their_distributions():
    prior = GENERIC._replace(mean=jnp.log(jnp.array([0.2, 3.0])))
    draws, number = draw_processes(4000, prior), np.arange(4000)
    is_warped, is_similar = (number // size % 2 == 1 for size in (1, 2))
    assert not np.any(draws.log_warp[~is_warped])
    for column in range(2):
        for similar, share in ((False, 1.0), (True, 0.3)):
            lengths = np.asarray(draws.log_lengthscale)[is_similar == similar, column]
            expected = norm(float(prior.mean[column]), np.hypot(share * float(prior.deviation[column]), 0.7))
            assert kstest(lengths, lambda x, law=expected: np.where(x < 4.0, law.cdf(x), 1.0)).pvalue > 0.01
        assert kstest(np.asarray(draws.log_warp)[is_warped, 0, column], norm(0.0, 0.75).cdf).pvalue > 0.01
    noise = np.asarray(draws.log_noise_var)
    assert abs(np.median(noise) + 6.0) < 0.2
    assert 0.95 < ((noise > -14.0) & (noise < 0.0)).mean() < 0.99  # the bounds contain 0.974 of N(-6, 3)


def test_a_warp_is_the_distribution_function_of_kumaraswamy():
    x = np.linspace(0.0, 1.0, 101)[:, None]
    for shapes in ((0.5, 0.5), (3.0, 0.4), (1.0, 1.0), (0.3, 4.0)):
        at_edges = kumaraswamy(np.clip(x, 1e-6, 1.0 - 1e-6), *shapes)  # where its derivative may be infinite
        process = TaskProcess(jnp.zeros(1), jnp.float32(0.0), jnp.log(jnp.array(shapes))[:, None])
        np.testing.assert_allclose(process.scale_columns(jnp.asarray(x, jnp.float32)), at_edges, atol=5e-3)
        inner = x[1:-1]  # close to an edge, rounding counts
        warped = process.scale_columns(jnp.asarray(inner, jnp.float32))
        np.testing.assert_allclose(warped, kumaraswamy(inner, *shapes), atol=2e-6)


def test_processes_of_highest_evidence_are_selected():
    x, y = waves(15)
    draws = draw_processes(40, GENERIC)
    selected, log_weight = select(draws, 5, trials_of(x, y), jnp.bool_(True), FREEDOM)
    densities = [log_density(jax.tree.map(lambda a, i=i: a[i], draws), x, y) for i in range(40)]
    best = np.argsort(densities)[::-1][:5]
    np.testing.assert_array_equal(selected.log_noise_var, draws.log_noise_var[best])
    np.testing.assert_allclose(np.asarray(softmax(log_weight)), softmax(np.array(densities)[best]), rtol=0.02)


def test_the_evidence_finds_the_column_with_a_cliff():
    rng = np.random.default_rng(5)
    x = rng.random((CAPACITY, 2))
    y = np.where(x[:, 0] < 0.12, 2.0, -0.3) + 0.05 * rng.normal(size=CAPACITY)
    trials = trials_of(x, (y - y.mean()) / y.std())
    selected, log_weight = select(draw_processes(96, GENERIC), 12, trials, jnp.bool_(True), FREEDOM)
    weight = np.asarray(softmax(log_weight))
    edge = jnp.array([[0.0, 0.5], [0.12, 0.5], [0.5, 0.0], [0.5, 0.12]], jnp.float32)
    at = np.asarray(jax.vmap(lambda process: process.scale_columns(edge))(selected))
    along, across = (np.abs(at[:, i] - at[:, i + 1]).sum(axis=-1) for i in (0, 2))
    assert weight @ np.log(along / across) > 1.0
