"""Tune a scikit-learn model by ask and tell, two trials at a time, with failed trials and a study file.

The model is a logistic regression on breast cancer data. One hyperparameter is active only for one kind of penalty. The
example treats an elastic net that is nearly a lasso as a failed training; the tuner does not try it again.

The script prints the number of trials, the number of failed trials and the best trial. It draws the study as
``live_model.png``. Run the script again with the same ``--study`` to resume the study.

``python examples/live_model.py [--study study.json] [--out FOLDER] [--quick]``; needs ``'dre_jax[optuna,sklearn]'``
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gallery import options, run
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dre_jax.tuning import Categorical, Float, Optimizer, Space

X, Y = load_breast_cancer(return_X_y=True)
SPACE = Space(
    {
        "C": Float(1e-4, 1e3, log=True),
        "penalty": Categorical(["ridge", "elastic net"]),
        "l1_ratio": Float(0.0, 1.0, when={"penalty": "elastic net"}),
    }
)
ROUNDS, AT_ONCE = 6, 2


def log_loss(C: float, penalty: str, l1_ratio: float = 0.0) -> float | None:
    """Returns the cross-validated loss; None if the training fails, as for an elastic net that is nearly a lasso."""
    if penalty == "elastic net" and l1_ratio > 0.95:
        return None
    options: dict[str, Any] = {"solver": "lbfgs"}
    if penalty == "elastic net":
        options = {"solver": "saga", "l1_ratio": l1_ratio, "max_iter": 200, "tol": 0.01}
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C, **options))
    return float(-cross_val_score(model, X, Y, cv=3, scoring="neg_log_loss").mean())


def main() -> None:
    """Runs the study, and draws it."""
    parser = options(__doc__, "two rounds of trials")
    parser.add_argument("--study", type=Path, help="study file; by default, a temporary file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.study or Path(folder) / "study.json"
        exists = path.exists()
        optimizer = Optimizer.load(path) if exists else Optimizer(SPACE, direction="minimize", seed=0)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in range(2 if args.quick else ROUNDS):
                trials = optimizer.ask(AT_ONCE)
                for trial, loss in zip(trials, pool.map(lambda t: log_loss(**t.params), trials), strict=True):
                    if loss is None:
                        optimizer.tell_failed(trial)
                    else:
                        optimizer.tell(trial, loss)
                optimizer.save(path)
        failed = sum(trial.state == "failed" for trial in optimizer.trials)
        print(f"{len(optimizer.trials)} trials, {failed} failed")
        print(f"log loss {optimizer.best.value:.4f} at {optimizer.best.params}")
        optimizer.figures()["History"].savefig(picture := args.out / "live_model.png", dpi=160)
        print(f"picture: {picture}")


if __name__ == "__main__":
    run(main)
