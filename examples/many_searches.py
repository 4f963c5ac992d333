"""A controller for each of many machines: searches of a simulation in JAX, all in one program.

A cart of unknown mass on a spring must move to a position and stay there. A controller pulls with the force
``kp * error - kd * speed``; the searches tune its two gains. The simulation is written in JAX, so
``optimize_functions`` compiles it together with the searches of all masses and seeds. The searches run on all cores, or
side by side on a GPU.

The script prints the mean cost of the best gains and the number of trials per second. It draws the best cost against
trials, for a Gaussian process and for random search, as ``many_searches.png``.

``python examples/many_searches.py [--out FOLDER] [--quick]``
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
from gallery import draw_best, options, run

from dre_jax import Float, Space, optimize_functions

GAINS = Space({"kp": Float(0.1, 100.0, log=True), "kd": Float(0.1, 100.0, log=True)})
STEPS, SECONDS = 200, 0.02  # of the simulation


def cost(mass: jax.Array, gains: dict[str, jax.Array]) -> jax.Array:
    """Returns the mean square of the error and of a thousandth of the force, over four seconds."""

    def step(state: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        position, speed = state
        force = jnp.clip(gains["kp"] * (1.0 - position) - gains["kd"] * speed, -50.0, 50.0)
        speed = speed + SECONDS * (force - 2.0 * position) / mass
        position = position + SECONDS * speed
        return (position, speed), (1.0 - position) ** 2 + (1e-3 * force) ** 2

    start = jnp.zeros_like(mass), jnp.zeros_like(mass)
    return jnp.mean(jax.lax.scan(step, start, None, STEPS)[1])


def main() -> None:
    """Runs the searches, prints and draws their results."""
    args = options(__doc__, "few masses and seeds").parse_args()
    n_masses, n_seeds, trials = (2, 2, 10) if args.quick else (10, 10, 25)
    masses = np.geomspace(0.2, 5.0, n_masses).astype(np.float32)
    curves = {}
    for method in ("gp", "random"):
        start = time.monotonic()
        searches = optimize_functions(cost, masses, GAINS, n_trials=trials, seeds=n_seeds, method=method)
        rate = searches.values.size / (time.monotonic() - start)
        best = searches.best[..., -1].mean()
        print(
            f"{method}: {best:.4f} after {trials} trials of {n_masses * n_seeds} searches, {rate:.0f} trials a second"
        )
        curves[method] = np.log10(searches.best.mean(axis=0))  # of each seed, over the masses
    path = args.out / "many_searches.png"
    draw_best(np.arange(1, trials + 1), curves, path, "trial", "logarithm of the best cost")
    print(f"picture: {path}")


if __name__ == "__main__":
    run(main)
