"""A method of your own in 30 lines, beside two of the library's.

A method is a frozen dataclass with two pure functions: ``fit`` learns from past tasks, and ``acquire`` values
candidates, the higher the sooner. The one here expects of a configuration what was good nearby in past tasks, corrects
that by what the trials have shown nearby, and adds a bonus where nothing has been tried. ``run_tasks`` compiles it and
puts it to 50 runs at once, ten tasks from five initial designs each.

The script prints the mean regret (0 is the best row of a task's table, 1 the worst) of the new method, of a Gaussian
process, which learns from nothing but the trials, and of random search, and draws it against trials as
``new_method.png``. What else a method may do, and how it gets a name for the command line, is in
``docs/how-to/extend.md``.

``python examples/new_method.py [--out FOLDER] [--quick]``
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from gallery import draw_regret, options, print_regret, run
from jax import Array

from dre_jax import RandomSearch, SearchSpace, run_tasks
from dre_jax.data import build_table, bundled
from dre_jax.methods import find
from dre_jax.search import Candidates, History


@dataclass(frozen=True, kw_only=True)
class Nearby:
    """Smooths responses nearby, in past tasks and in the trials."""

    width: float = 0.2
    """Of a neighbourhood, in the unit cube."""
    bonus: float = 0.1
    """For what nothing is known of."""

    def fit(self, meta: SearchSpace, key: Array) -> tuple[Array, Array]:
        """Every fifth row of the past tasks, f32[R, D], and its response on its task's scale, f32[R]."""
        table = build_table(meta.train)
        return table.x[::5], table.response[::5]

    def acquire(self, params: tuple[Array, Array], history: History, candidates: Candidates, key: Array) -> Array:
        """f32[N]: expectation and bonus. Empty slots of the history have a weight of 0."""
        worst = jnp.min(history.response, where=history.where, initial=jnp.inf)
        best = jnp.max(history.response, where=history.where, initial=-jnp.inf)
        response = (history.response - worst) / jnp.maximum(best - worst, 1e-6)
        error = jnp.where(history.where, response - self._expected(params, history.x), 0.0)
        weight = jnp.where(history.where[None, :], self._nearness(candidates.x, history.x), 0.0)
        density = 0.3 + weight.sum(axis=-1)
        return self._expected(params, candidates.x) + (weight @ error) / density + self.bonus / jnp.sqrt(density)

    def _expected(self, params: tuple[Array, Array], x: Array) -> Array:
        weight = self._nearness(x, params[0])
        return (weight @ params[1]) / (1e-6 + weight.sum(axis=-1))

    def _nearness(self, x: Array, others: Array) -> Array:
        square = (x**2).sum(axis=-1)[:, None] + (others**2).sum(axis=-1)[None, :] - 2.0 * x @ others.T
        return jnp.exp(-square / (2.0 * self.width**2))


def regret(method, space: SearchSpace, trials: int) -> np.ndarray:
    """f64[tasks, 1 + trials]: 1 minus the best response so far, mean over initial designs."""
    key = jax.random.key(0)
    params = method.fit(space, key)
    by_task: dict[str, list[np.ndarray]] = {}
    for dataset, _, trace in run_tasks(method, params, space.test, space.designs, n_trials=trials, key=key):
        by_task.setdefault(dataset, []).append(1.0 - trace)
    return np.array([np.mean(runs, axis=0) for runs in by_task.values()])


def main() -> None:
    """Runs all three, and draws."""
    args = options(__doc__, "five trials, no Gaussian process").parse_args()
    space, trials = bundled.load("random-forest"), 5 if args.quick else 25
    methods = {"Nearby (the new method)": Nearby(), "random search": RandomSearch()}
    if not args.quick:
        methods["Gaussian process"] = find("gp").default
    curves = {name: regret(method, space, trials) for name, method in methods.items()}
    print_regret(curves, (1, 5, 25))
    draw_regret(curves, args.out / "new_method.png")


if __name__ == "__main__":
    run(main)
