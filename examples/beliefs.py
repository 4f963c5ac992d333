"""Beliefs of the surrogate, before and after five trials.

A deep ranking ensemble says of configurations which is better, not how good they are: every member ranks all of them,
and the spread of the ranks is what the ensemble does not know. Here it learns from 20 past tasks that the library
carries how support vector machines do, and is asked about one hyperparameter of a machine that tells three kinds of
wine apart, the width ``gamma`` of its kernel, with all others fixed. Then five trials follow, each where the mean rank
less its standard deviation is lowest; before each the members are fine-tuned on the trials so far.

The script prints the trials, which value the ensemble ranks first before and after them, and which value is the best by
repeated 5-fold cross-validation of all. It draws both beliefs as ``beliefs.png``: the members' mean rank with a band
of a standard deviation, the trials by their numbers, and the true ranks.

``python examples/beliefs.py [--out FOLDER] [--quick]``, with ``pip install 'dre_jax[sklearn]'``
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gallery import options, run
from scipy.stats import rankdata
from sklearn.datasets import load_wine
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dre_jax import DRE
from dre_jax.data import bundled
from dre_jax.data.columns import read_descriptor
from dre_jax.methods import find
from dre_jax.methods.dre.ensemble import Support, scores
from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.report.style import COLOURS, save
from dre_jax.search import make_history, sort_history
from dre_jax.search.ranks import mean_and_deviation, mean_tie_ranks
from dre_jax.tuning.space.descriptors import from_descriptor

FIXED = {"C": 10.0, "kernel": "rbf", "scaler": "standard"}
GAMMA = np.geomspace(0.001, 10.0, 25)
TRIALS = 5


class Belief(NamedTuple):
    """Ranks of all values of gamma, 1 is the best."""

    mean: np.ndarray
    """f32[25], over members."""
    deviation: np.ndarray
    """f32[25]"""


def accuracy(repeats: int) -> np.ndarray:
    """f64[25]: what the trials give."""
    wine = load_wine(as_frame=True)
    X, y = wine.data[["ash", "alcalinity_of_ash", "magnesium", "total_phenols"]].to_numpy(), wine.target.to_numpy()
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0)
    models = [make_pipeline(StandardScaler(), SVC(C=FIXED["C"], gamma=gamma)) for gamma in GAMMA]
    return np.array([cross_val_score(model, X, y, cv=folds).mean() for model in models])


@partial(jax.jit, static_argnames="method")
def believe(method: DRE, params, x, history, key) -> tuple[jax.Array, jax.Array]:
    """Fine-tunes on the history, where there is one, and ranks."""
    best_first = sort_history(history)
    tuned = fine_tune(method.model, method.fine_tuning, params, *best_first[:4], key)
    params = jax.tree.map(lambda new, old: jnp.where(history.where.any(), new, old), tuned, params)
    values = scores(method.model, params, Support(best_first.x, best_first.response, best_first.where), x)
    return mean_and_deviation(mean_tie_ranks(values, jnp.ones(values.shape, bool)))


def walk(method: DRE, params, x: np.ndarray, y: np.ndarray) -> tuple[list[Belief], list[int]]:
    """Beliefs before every trial and after the last, and the rows that were tried."""
    rows: list[int] = []
    beliefs: list[Belief] = []
    for trial in range(TRIALS + 1):
        history = make_history(x[rows], y[rows], capacity=TRIALS)
        belief = believe(method, params, jnp.asarray(x), history, jax.random.key(trial))
        beliefs.append(Belief(*map(np.asarray, belief)))
        if trial < TRIALS:
            value = beliefs[-1].mean - beliefs[-1].deviation
            value[rows] = np.inf
            rows.append(int(np.argmin(value)))
    return beliefs, rows


def draw(beliefs: list[Belief], rows: list[int], truth: np.ndarray, path: Path) -> None:
    """The first belief and the last."""

    def paint(figure) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, belief, order in zip(panels, (beliefs[0], beliefs[-1]), ([], rows), strict=True):
            low, high = belief.mean - belief.deviation, belief.mean + belief.deviation
            band = np.clip(low, 1, len(GAMMA)), np.clip(high, 1, len(GAMMA))
            axes.fill_between(GAMMA, *band, color=COLOURS[0], alpha=0.2, linewidth=0, label="± standard deviation")
            axes.plot(GAMMA, belief.mean, color=COLOURS[0], linewidth=2, label="mean rank over members")
            axes.plot(GAMMA, truth, color="black", linestyle=":", linewidth=1.5, label="true rank")
            axes.plot(GAMMA[order], truth[order], "o", color=COLOURS[1], markersize=11, label="trial, by number")
            for number, row in enumerate(order, start=1):
                place = {"ha": "center", "va": "center_baseline", "fontsize": 7.5, "fontweight": "bold"}
                axes.text(GAMMA[row], truth[row], str(number), color="white", **place)
            axes.set(
                xscale="log",
                xlabel="gamma",
                title=f"after {len(order)} trials" if order else "before any trial",
            )
            axes.xaxis.set_major_formatter("{x:g}")
            axes.spines[["top", "right"]].set_visible(False)
        last = len(GAMMA)
        panels[0].set(
            ylabel=f"rank among {last} values (1 is the best)", ylim=(last + 1, 0), yticks=[1, 5, 10, 15, 20, last]
        )
        figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)

    save((7.6, 4.0), paint, path)
    print(f"picture: {path}")


def main() -> None:
    """Learns, walks and draws."""
    args = options(__doc__, "little training, and true ranks from one repetition").parse_args()
    space = from_descriptor(read_descriptor(bundled.path(), "svm"))
    x = np.array([space.encode({**FIXED, "gamma": float(gamma)}) for gamma in GAMMA], np.float32)
    y = accuracy(1 if args.quick else 10)
    method = find("dre").make({"training.steps": 50 if args.quick else 1000})
    params = method.fit(bundled.load("svm"), jax.random.key(0))
    beliefs, rows = walk(method, params, x, y)
    truth = rankdata(-y)
    for number, row in enumerate(rows, start=1):
        print(f"trial {number}: gamma {GAMMA[row]:.4f}, accuracy {y[row]:.3f}")
    for when, belief in (("before any trial", beliefs[0]), (f"after {TRIALS} trials", beliefs[-1])):
        print(f"{when} the ensemble ranks gamma {GAMMA[np.argmin(belief.mean)]:.4f} first")
    best = int(np.argmin(truth))
    print(f"the best of the {len(GAMMA)} values is {GAMMA[best]:.4f}, accuracy {y[best]:.3f}")
    draw(beliefs, rows, truth, args.out / "beliefs.png")


if __name__ == "__main__":
    run(main)
