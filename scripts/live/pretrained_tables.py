"""Tables of `scripts/compare_pretrained.py`.

Regret of an objective is 0 at the lowest loss that any study found, and 1 at the median of random configurations. It is
at most `MOST`: means would else be those of the objectives on which the median configuration is almost the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markdown_tables import markdown_table, mean_cell

AT = (1, 2, 3, 5, 10, 15, 20, 25, 30)
MOST = 2.0
SAME = (1, 5, 10, 25)
SINGLE = {"default": 1, "halving": 25}
"""Tuners with one value, by the number of trials that it costs."""

Floats = npt.NDArray[np.float64]


class Curves(NamedTuple):
    """Regret on one objective."""

    family: str
    problem: str
    metric: str
    regret: dict[str, Floats]
    """By tuner, f64[T], mean over seeds."""
    first_gain: float
    """How much lower the loss of the first suggestion is than that of the defaults."""


def curves(studies: Mapping[Any, Sequence[float]]) -> list[Curves]:
    """Returns the objectives of which all tuners are done, and on which configurations differ."""
    groups: dict[tuple[str, str, str], dict[str, list[Sequence[float]]]] = {}
    for study, losses in studies.items():
        objective = groups.setdefault((study.family, study.problem, study.metric), {})
        objective.setdefault(study.tuner, []).append(losses)
    results = [Curves(*names, _regret(runs), _first_gain(runs)) for names, runs in groups.items() if len(runs) >= 5]
    return [one for one in results if one.regret]


def _regret(by_tuner: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, Floats]:
    least = min(losses[-1] for many in by_tuner.values() for losses in many)
    first = [losses[0] for name in ("random", "tpe") for losses in by_tuner.get(name, ())]
    spread = float(np.median(first)) - least if first else 0.0
    if spread < 1e-9:
        return {}
    scaled = {name: (np.array(many) - least) / spread for name, many in by_tuner.items()}
    return {name: np.minimum(regret, MOST).mean(axis=0) for name, regret in scaled.items()}


def _first_gain(by_tuner: Mapping[str, Sequence[Sequence[float]]]) -> float:
    first = {name: np.mean([losses[0] for losses in by_tuner[name]]) for name in ("default", "pretrained")}
    return float(first["default"] - first["pretrained"])


def report(studies: Mapping[Any, Sequence[float]]) -> str:
    """Returns all tables."""
    objectives = curves(studies)
    if not objectives:
        return "no objective is complete"
    seeds = 1 + max(study.seed for study in studies)
    lead = f"{len(objectives)} objectives, {seeds} seeds; ± standard error over objectives."
    return "\n\n".join([lead, *(f"### {name}\n\n{text}" for name, text in _tables(objectives))])


def _tables(objectives: list[Curves]) -> Iterator[tuple[str, str]]:
    for metric in ("all", *dict.fromkeys(one.metric for one in objectives)):
        selected = [one for one in objectives if metric in ("all", one.metric)]
        yield f"Regret, {metric} ({len(selected)} objectives)", _regrets(selected)
        yield f"Pretrained ahead of others by, {metric}", _claims(selected)
    yield "Models", _models(objectives)


def _regrets(objectives: list[Curves]) -> str:
    rows = []
    for tuner in dict.fromkeys(name for one in objectives for name in one.regret):
        values = [one.regret[tuner] for one in objectives if tuner in one.regret]
        cells = [mean_cell([v[min(t, len(v)) - 1] for v in values]) if _has(tuner, t) else "" for t in AT]
        rows.append([f"`{tuner}`", str(len(values)), *cells])
    return markdown_table(["tuner", "objectives", *(f"regret at {t}" for t in AT)], rows)


def _has(tuner: str, trials: int) -> bool:
    return trials >= SINGLE.get(tuner, 1)


def _claims(objectives: list[Curves]) -> str:
    """By how much the pretrained surrogate is ahead of others, after as many trials and after a fifth of theirs."""
    heads = ["other", *(f"both at {t}" for t in SAME), "at 25, pretrained at 5", "not behind there"]
    rows = []
    for tuner in dict.fromkeys(name for one in objectives for name in one.regret if name != "pretrained"):
        pairs = [(one.regret[tuner], one.regret["pretrained"]) for one in objectives if tuner in one.regret]
        same = [
            mean_cell([_at(other, t) - _at(own, t) for other, own in pairs]) if _has(tuner, t) else "" for t in SAME
        ]
        ahead = [_at(other, 25) - _at(own, 5) for other, own in pairs]
        share = np.mean([value >= -1e-9 for value in ahead])
        rows.append([f"`{tuner}`", *same, mean_cell(ahead), f"{100 * share:.0f} %"])
    return markdown_table(heads, rows)


def _at(regret: Floats, trials: int) -> float:
    return float(regret[min(trials, len(regret)) - 1])


def _models(objectives: list[Curves]) -> str:
    """First suggestions against defaults, and regrets of the tuners, by family."""
    rows = []
    for family in [*dict.fromkeys(one.family for one in objectives), "all"]:
        part = [one for one in objectives if family in ("all", one.family)]
        first = np.array([one.first_gain for one in part])
        counts = [int(np.sum(first > 1e-9)), int(np.sum(abs(first) <= 1e-9)), int(np.sum(first < -1e-9))]
        others = [mean_cell([one.regret[tuner][24] for one in part]) for tuner in ("gp", "tpe", "random")]
        ours = [mean_cell([one.regret["pretrained"][t - 1] for one in part]) for t in (1, 5, 25)]
        rows.append(
            [
                family,
                " / ".join(map(str, counts)),
                mean_cell([one.regret["default"][0] for one in part]),
                *ours,
                *others,
            ]
        )
    heads = ["model", "first suggestion better / equal / worse than default", "default"]
    return markdown_table(
        [*heads, *(f"pretrained at {t}" for t in (1, 5, 25)), *(f"{t} at 25" for t in ("gp", "tpe", "random"))], rows
    )


def first_table(gains: Iterable[tuple[str, str, Sequence[float]]]) -> str:
    """How often the first suggestion is better than, equal to and worse than the defaults, by family and metric."""
    by_family: dict[str, dict[str, Sequence[float]]] = {}
    for family, metric, values in gains:
        by_family.setdefault(family, {})[metric] = values
    metrics = list(dict.fromkeys(metric for one in by_family.values() for metric in one))
    rows = [[name, *(_counts(one.get(metric)) for metric in metrics)] for name, one in by_family.items()]
    everything = {m: [v for one in by_family.values() for v in one.get(m, ())] for m in metrics}
    rows.append(["all", *(_counts(everything[metric]) for metric in metrics)])
    return markdown_table(["model", *metrics], rows)


def _counts(gains: Sequence[float] | None) -> str:
    if not gains:
        return ""
    better, equal = sum(gain > 0 for gain in gains), sum(gain == 0 for gain in gains)
    return f"{better} / {equal} / {len(gains) - better - equal}"
