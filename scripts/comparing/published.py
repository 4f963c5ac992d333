"""The order of the methods here beside that of the results published for the real HPO-B."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markdown_tables import markdown_table
from scipy import stats

from dre_jax.data import read_results
from dre_jax.errors import ConfigError
from dre_jax.report import Comparison, compare, significance

TRACES = {
    "random": "Random",
    "gp": "GP",
    "dkgp": "DGP",
    "dngo": "DNGO",
    "bohamiann": "BOHAMIANN",
    "tst": "TST",
    "taf": "TAF",
    "rgpe": "RGPE",
    "fsbo": "FSBO",
    "dre": "DRE",
    "dre-no-finetune": "DRE-no-finetune",
    "dre-ri": "DRE-RI-deepset",
    "listwise-weighted": "loss-list-weighted_t",
    "listwise": "loss-list_t",
    "pairwise": "loss-pair_t",
    "pointwise": "loss-point_t",
    "regression": "loss-reg_t",
    "listwise-weighted-ri": "loss-list-weighted",
    "listwise-ri": "loss-list",
    "pairwise-ri": "loss-pair",
    "pointwise-ri": "loss-point",
    "regression-ri": "loss-reg",
}
"""A method, and the file of its published results."""

WHY: dict[str, str] = {
    "regression": "there meta-training makes regression worse than random weights do, here better. Here the responses "
    "of every list and of every history are put on one scale; past tasks whose levels differ would mislead it."
}
"""Findings where a method is ahead here of one that is ahead of it in the published results."""


class Pair(NamedTuple):
    """Two methods of which the first is ahead in the published results, beyond chance."""

    one: str
    other: str
    trial: int
    here: str
    """"the same here" or "turned", beyond chance as well, or "within chance"."""


def published_order(comparison: Comparison, folder: Path, at: Sequence[int]) -> list[str]:
    """Both orders at each trial, how far they agree, and the pairs beyond chance one way there, the other way here.

    Raises:
      ConfigError: where the folder has no results of two of the methods.
    """
    names = [name for name in comparison.methods if (folder / f"{TRACES.get(name)}.json").exists()]
    if len(names) < 2:
        raise ConfigError(f"{folder} must hold published results of two of the methods, but has {len(names)}")
    there = compare({name: read_results(folder / f"{TRACES[name]}.json") for name in names})
    regret = comparison.regret[[comparison.methods.index(name) for name in names]]
    here = comparison._replace(methods=tuple(names), regret=regret)
    at = [t for t in at if t <= min(there.n_trials, here.n_trials)]
    intro = (
        f"The published results on HPO-B, {len(there.runs)} runs a method of {len(there.spaces)} search spaces, beside "
        "those here, ranked among these methods alone. A pair counts where it differs beyond chance (Wilcoxon's test "
        "over tasks, Holm-adjusted)."
    )
    ranks = [one.average_rank("spaces") for one in (there, here)]
    heads = ["method", *(f"{what} at {t}" for t in at for what in ("published", "here"))]
    rows = [
        [f"`{names[i]}`", *(f"{rank[i, t]:.2f}" for t in at for rank in ranks)]
        for i in np.argsort(ranks[0][:, at[-1]], kind="stable")
    ]
    pairs = list(_pairs(there, here, at))
    tau = {t: stats.kendalltau(*(rank[:, t] for rank in ranks)).statistic for t in at}
    parts = ["## Beside the published results", textwrap.fill(intro, 120), markdown_table(heads, rows)]
    return [*parts, _agreement(pairs, tau), *_turned(pairs)]


def _pairs(there: Comparison, here: Comparison, at: Sequence[int]) -> Iterator[Pair]:
    for t in at:
        theirs, ours = (significance(one, t) for one in (there, here))
        for i, j in np.argwhere(theirs.wilcoxon_p < theirs.alpha):
            if theirs.average_rank[i] < theirs.average_rank[j]:
                sure = ours.wilcoxon_p[i, j] < ours.alpha
                same = "the same here" if ours.average_rank[i] < ours.average_rank[j] else "turned"
                yield Pair(there.methods[i], there.methods[j], t, same if sure else "within chance")


def _agreement(pairs: Sequence[Pair], tau: Mapping[int, float]) -> str:
    kinds = ("the same here", "within chance", "turned")
    rows = []
    for t, value in tau.items():
        here = [pair.here for pair in pairs if pair.trial == t]
        rows.append([str(t), f"{value:.2f}", str(len(here)), *(str(here.count(kind)) for kind in kinds)])
    return markdown_table(["trials", "Kendall's tau of the ranks", "pairs that differ there", *kinds], rows)


def _turned(pairs: Sequence[Pair]) -> list[str]:
    found: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        if pair.here == "turned":
            found.setdefault((pair.one, pair.other), []).append(str(pair.trial))
    if not found:
        return ["No pair is turned round beyond chance."]
    lines = []
    for (one, other), trials in found.items():
        text = f"- `{one}` is ahead of `{other}` there, behind it here, at {', '.join(trials)} trials"
        why = f": {WHY[other]}" if other in WHY else "."
        lines.append(textwrap.fill(text + why, 120, subsequent_indent="  "))
    return ["Turned round beyond chance:", "\n".join(lines)]
