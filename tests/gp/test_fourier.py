"""Random Fourier features of Matern 5/2 against its formula."""

import jax
import numpy as np

from dre_jax.gp.fourier import matern52_frequencies


def test_mean_cosine_is_matern52():
    """Rahimi and Recht 2007: k(x, z) is the mean of cos(w (x - z)) over frequencies w."""
    differences = np.random.default_rng(0).uniform(0.0, 1.0, size=(9, 3))
    frequencies = np.asarray(jax.jit(matern52_frequencies, static_argnums=(1, 2))(jax.random.key(0), 3, 20_000))
    distance = np.sqrt(5.0) * np.linalg.norm(differences, axis=1)
    kernel = (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
    np.testing.assert_allclose(np.cos(differences @ frequencies).mean(1), kernel, atol=0.015)  # three errors
