"""HPO-B's handler with a class of your own.

Code that was written for HPO-B has one method, ``observe_and_suggest``: it gets the configurations evaluated so far,
their responses, and those that may be evaluated next, and answers with the row of one of these. Such a class runs here
as it is. The one below smooths the responses over neighbourhoods, and adds a bonus where nothing was tried.

The library's `HPOBHandler` has the interface of HPO-B's own, and reads its files (``dre-jax download hpo-b``) or any
others of their form, here those that the library carries. The script prints the regret (0 is the best row of a task's
table, 1 the worst) of the class and of random search, the mean of ten tasks from two initial designs each, and draws it
against trials as ``own_class.png``. From the command line, ``dre-jax evaluate --method examples/own_class.py:Smoother``
writes the same runs into a result file.

``python examples/own_class.py [--out FOLDER] [--quick]``
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from gallery import draw_regret, options, print_regret, run

from dre_jax.data import bundled
from dre_jax.hpob.handler import HPOBHandler
from dre_jax.search.host import HostMethod

SPACE = "random-forest"


class Smoother:
    """Tries what is good nearby, or far from everything."""

    def __init__(self, width: float = 0.3, bonus: float = 1.0) -> None:
        self.width, self.bonus = width, bonus

    def observe_and_suggest(self, X_obs: np.ndarray, y_obs: np.ndarray, X_pen: np.ndarray) -> int:
        """The row of X_pen to evaluate next."""
        square = ((X_pen[:, None, :] - X_obs[None, :, :]) ** 2).sum(axis=-1)
        weight = np.exp(-square / (2 * self.width**2))
        response = (y_obs.ravel() - y_obs.mean()) / (y_obs.std() + 1e-9)
        density = 1 + weight.sum(axis=1)
        return int(np.argmax(weight @ response / density + self.bonus / np.sqrt(density)))


class Chance:
    """Tries any."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def observe_and_suggest(self, X_obs: np.ndarray, y_obs: np.ndarray, X_pen: np.ndarray) -> int:
        """The row of X_pen to evaluate next."""
        return int(self.rng.integers(len(X_pen)))


def regret(handler: HPOBHandler, make: Callable[[int], HostMethod], designs: list[str], trials: int) -> np.ndarray:
    """f64[tasks, 1 + trials]: 1 minus the best response so far, mean over initial designs."""
    runs = [(dataset, design) for dataset in handler.get_datasets(SPACE) for design in designs]
    traces = [handler.evaluate(make(i), SPACE, *one, n_trials=trials) for i, one in enumerate(runs)]
    return 1.0 - np.array(traces).reshape(-1, len(designs), 1 + trials).mean(axis=1)


def main() -> None:
    """Evaluates both, and draws."""
    args = options(__doc__, "one initial design, ten trials").parse_args()
    handler = HPOBHandler(root_dir=bundled.path(), mode="v3-test")
    designs, trials = (["test0"], 10) if args.quick else (["test0", "test1"], 50)
    curves = {
        "Smoother (the class)": regret(handler, lambda _: Smoother(), designs, trials),
        "random search": regret(handler, Chance, designs, trials),
    }
    print_regret(curves, (5, 10, 50))
    draw_regret(curves, args.out / "own_class.png")


if __name__ == "__main__":
    run(main)
