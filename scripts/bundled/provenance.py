"""The text of PROVENANCE.md: the prose that ships, and around it versions and tables of what was made."""

from __future__ import annotations

import platform

import numpy as np
import scipy
import sklearn
from markdown_tables import markdown_table
from scipy.special import comb

from dre_jax.data import bundled

from .results import Result, Results, Sizes, shared_rows
from .spaces import SPACES
from .tasks import Array, Problem

SPLITS = ("train", "validation", "test")


def provenance(results: Results, problems: dict[str, list[Problem]], sizes: Sizes) -> str:
    shipped = (bundled.path() / "PROVENANCE.md").read_text()
    text, meaning = shipped.partition("\n\nMade with")[0], shipped.partition("## How hard it is\n\n")[2]
    every = {name: [r for split in splits.values() for r in split.values()] for name, splits in results.items()}
    seconds = {name: sum(result.seconds for result in found) for name, found in every.items()}
    versions = (
        f"Made with scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}, in {sum(seconds.values()) / 60:.0f} minutes of one "
        f"{platform.machine()} core."
    )
    spaces = [
        [
            f"`{name}`",
            str(len(SPACES[name].columns)),
            " / ".join(str(len(splits[split])) for split in SPLITS),
            str(sizes.shared + sizes.fresh),
            f"{max(result.best_share() for result in every[name]):.1%}",
            str(min(len(set(result.responses)) for result in every[name])),
            f"{seconds[name]:.0f}",
        ]
        for name, splits in results.items()
    ]
    counts = ("rows", "largest share of the best value", "fewest distinct values", "seconds")
    regrets = {name: hardness(splits, shared_rows(name, sizes)) for name, splits in results.items()}
    tasks = [
        [split, f"`{p.name}`", *map(str, p.features.shape), f"{p.classes} classes" if p.classes else "a number"]
        for split, members in problems.items()
        for p in members
    ]
    parts = [
        text,
        versions,
        "## Spaces",
        markdown_table(["space", "columns", f"tasks {' / '.join(SPLITS)}", *counts], spaces),
        "## How hard it is",
        meaning.partition("\n\n|")[0],
        markdown_table(
            ["space", *next(iter(regrets.values()))],
            [[f"`{name}`", *(f"{value:.3f}" for value in found.values())] for name, found in regrets.items()],
        ),
        "## Tasks, the same in every space",
        markdown_table(["split", "task", "rows", "features", "predicts"], tasks),
    ]
    return "\n\n".join(parts) + "\n"


def hardness(splits: dict[str, dict[str, Result]], shared: list[list[float]]) -> dict[str, float]:
    """Regrets of one space over its test tasks; `shared` are the configurations that all tasks have."""
    test, train = (_shared_regrets(splits[split], shared) for split in ("test", "train"))
    found = splits["test"].values()
    random = {t: float(np.mean([random_search(result.responses, t) for result in found])) for t in (5, 10, 25)}
    return {
        **{f"random {t}": value for t, value in random.items()},
        "one trial": float(test.mean()),
        "best average": float(test[:, train.mean(axis=0).argmin()].mean()),
        "best shared": float(test.min(axis=1).mean()),
    }


def regret(responses: list[float]) -> Array:
    """(n,): 0 for the best row of the task, 1 for the worst."""
    y = np.asarray(responses)
    return np.asarray((y.max() - y) / (y.max() - y.min()))


def random_search(responses: list[float], trials: int) -> float:
    """Mean regret of random search without replacement, exact: the best of `trials` rows by rank."""
    behind, values = np.arange(len(responses))[::-1], np.sort(regret(responses))
    drawn = min(trials, len(values))
    # of all sets of so many rows, the share whose best row each is: the others lie behind it
    return float(comb(behind, drawn - 1) @ values / comb(len(values), drawn))


def _shared_regrets(results: dict[str, Result], shared: list[list[float]]) -> Array:
    """(tasks, shared): the regret of every shared configuration on every task."""
    return np.array([regret(r.responses)[[r.rows.index(row) for row in shared]] for r in results.values()])
