"""A method of your own in 30 lines, beside two of the library's.

A method is a frozen dataclass with two pure functions: ``fit`` learns from past tasks, and ``acquire`` values
candidates, the higher the sooner. The one here expects of a configuration what was good nearby in past tasks, corrects
that by what the trials have shown nearby, and adds a bonus where nothing has been tried. ``run_hpob`` compiles it and
puts it to 50 runs at once, ten tasks from five initial designs each.

The script prints the mean regret (0 is the best row of a task's table, 1 the worst) of the new method, of a Gaussian
process, which learns from nothing but the trials, and of random search, and leaves the report in ``new_method/``, of
which ``regret.png`` is a figure. What else a method may do, and how it gets a name for the command line, is in
``docs/how-to/extend.md``.

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


def main() -> None:
    """Evaluates all three, and reports."""
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
