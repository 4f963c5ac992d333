"""A class that was written for HPO-B.

Such a class has one method, ``observe_and_suggest``. It gets the configurations evaluated so far, their responses, and
the candidates, and returns the row of the next candidate. The class runs unchanged under HPO-B's protocol, on HPO-B's
files (``dre-jax download hpo-b``) or other files in the same format. This example uses the bundled files. Its class
averages the responses over neighbourhoods, and adds a bonus far from all trials.

The script prints the mean regret (0 is the best row of a task's table, 1 the worst) of the class and of random search
on ten tasks from two initial designs each. It writes the report, with the figure ``regret.png``, to ``own_class/``. On
the command line, ``dre-jax evaluate --method examples/own_class.py:Smoother`` writes the same runs to a result file.

``python examples/own_class.py [--out FOLDER] [--quick]``
"""

from __future__ import annotations

import numpy as np
from gallery import options, report, run

from dre_jax.data import bundled
from dre_jax.hpob import run_hpob


class Smoother:
    """Suggests configurations near good trials, or far from all trials."""

    def __init__(self, width: float = 0.3, bonus: float = 1.0) -> None:
        self.width, self.bonus = width, bonus

    def observe_and_suggest(self, X_obs: np.ndarray, y_obs: np.ndarray, X_pen: np.ndarray) -> int:
        """Returns the row of X_pen to evaluate next."""
        square = ((X_pen[:, None, :] - X_obs[None, :, :]) ** 2).sum(axis=-1)
        weight = np.exp(-square / (2 * self.width**2))
        response = (y_obs.ravel() - y_obs.mean()) / (y_obs.std() + 1e-9)
        density = 1 + weight.sum(axis=1)
        return int(np.argmax(weight @ response / density + self.bonus / np.sqrt(density)))


def main() -> None:
    """Runs both methods, and writes the report."""
    args = options(__doc__, "one initial design").parse_args()
    designs, out, files = ["test0"] if args.quick else ["test0", "test1"], args.out / "own_class", {}
    for name, method in {"Smoother (the class)": Smoother, "random search": "random"}.items():
        files[name] = out / f"{name}.json"
        run_hpob(method, bundled.path(), files[name], spaces=["random-forest"], trials=50, seeds=designs)
    report(files, out, [5, 10, 50])


if __name__ == "__main__":
    run(main)
