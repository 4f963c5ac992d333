"""A method of your own in 30 lines, beside two of the library's.

A method is a frozen dataclass with two pure functions. ``fit`` learns from past tasks. ``acquire`` returns a value for
each candidate; the candidate with the highest value is evaluated next. This method predicts a response from past tasks
at nearby configurations, corrects the prediction by nearby trials, and adds a bonus far from all trials. ``run_hpob``
compiles the method for 50 runs at once: ten tasks from five initial designs each.

The script prints the mean regret (0 is the best row of a task's table, 1 the worst) of the new method, of a Gaussian
process, which learns from the trials alone, and of random search. It writes the report, with the figure
``regret.png``, to ``new_method/``. ``docs/how-to/extend.md`` explains the other functions of a method, and how it gets
a name for the command line.

``python examples/new_method.py [--out FOLDER] [--quick]``
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from gallery import options, report, run
from jax import Array

from dre_jax.data import SearchSpace, build_table, bundled
from dre_jax.hpob import run_hpob
from dre_jax.search import Candidates, History


@dataclass(frozen=True, kw_only=True)
class Nearby:
    """Averages the responses of nearby configurations, in past tasks and in the trials."""

    width: float = 0.2
    """Width of a neighbourhood, in the unit cube."""
    bonus: float = 0.1
    """Bonus of a candidate without trials nearby."""

    def fit(self, meta: SearchSpace, key: Array) -> tuple[Array, Array]:
        """Returns every fifth row of the past tasks, f32[R, D], and its response on its task's scale, f32[R]."""
        table = build_table(meta.train)
        return table.x[::5], table.response[::5]

    def acquire(self, params: tuple[Array, Array], history: History, candidates: Candidates, key: Array) -> Array:
        """Returns prediction plus bonus, f32[N]. Empty slots of the history have a weight of 0."""
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


def main() -> None:
    """Runs the three methods, and writes the report."""
    args = options(__doc__, "one initial design, no Gaussian process").parse_args()
    methods = {"Nearby (the new method)": Nearby(), "random search": "random", "Gaussian process": "gp"}
    if args.quick:
        del methods["Gaussian process"]
    designs, out, files = ["test0"] if args.quick else None, args.out / "new_method", {}
    for name, method in methods.items():
        files[name] = out / f"{name}.json"
        run_hpob(method, bundled.path(), files[name], spaces=["random-forest"], trials=25, seeds=designs)
    report(files, out, [1, 5, 25])


if __name__ == "__main__":
    run(main)
