"""A class that was written for HPO-B.

Such a class has one method, ``observe_and_suggest``: it gets the configurations evaluated so far, their responses, and
those that may be evaluated next, and answers with the row of one of these. It runs as it is, under HPO-B's protocol, on
HPO-B's files (``dre-jax download hpo-b``) or any others of their form, here those that the library carries. The one
below smooths the responses over neighbourhoods, and adds a bonus where nothing was tried.

The script prints the regret (0 is the best row of a task's table, 1 the worst) of the class and of random search, the
mean of ten tasks from two initial designs each, and leaves the report in ``own_class/``, of which ``regret.png`` is a
figure. From the command line, ``dre-jax evaluate --method examples/own_class.py:Smoother`` writes the same runs into a
result file.

``python examples/own_class.py [--out FOLDER] [--quick]``
"""

from __future__ import annotations

import numpy as np
from gallery import options, report, run

from dre_jax.data import bundled
from dre_jax.hpob import run_hpob


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


def main() -> None:
    """Evaluates both, and reports."""
    args = options(__doc__, "one initial design").parse_args()
    designs, out, files = ["test0"] if args.quick else ["test0", "test1"], args.out / "own_class", {}
    for name, method in {"Smoother (the class)": Smoother, "random search": "random"}.items():
        files[name] = out / f"{name}.json"
        run_hpob(method, bundled.path(), files[name], spaces=["random-forest"], trials=50, seeds=designs)
    report(files, out, [5, 10, 50])


if __name__ == "__main__":
    run(main)
