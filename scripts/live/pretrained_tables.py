"""Tables of `scripts/compare_pretrained.py`.

Regret of an objective is 0 at the lowest loss that any study found, and 1 at the median of random configurations. It is
at most `MOST`: means would else be those of the objectives on which the median configuration is almost the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from study import markdown_table, mean_cell

AT = (1, 2, 3, 5, 10, 15, 20, 25, 30)
MOST = 2.0
SAME = (1, 5, 10, 25)
FITS = {"halving": 25}
"""What the one value of a tuner costs, in trials."""
OBJECTIVE = ["family", "problem", "metric"]


def report(studies: Mapping[Any, Sequence[float]]) -> str:
    """Returns all tables, of the objectives of which all tuners are done, and on which configurations differ."""
    index = pd.MultiIndex.from_tuples(list(studies), names=next(iter(studies))._fields) if studies else None
    losses = pd.DataFrame([_padded(study.tuner, values) for study, values in studies.items()], index)
    groups = losses.groupby(OBJECTIVE, sort=False) if studies else ()
    # Of an objective and a tuner, f64[T], mean over seeds.
    regrets = [regret for _, group in groups if (regret := _regret(group)) is not None]
    if not regrets:
        return "no objective is complete"
    regret = pd.concat(regrets)
    first = losses[1].groupby([*OBJECTIVE, "tuner"], sort=False).mean().unstack("tuner")
    gain = (first["default"] - first["pretrained"]).reindex(regret.droplevel("tuner").index.unique())
    lead = (
        f"{len(gain)} objectives, {1 + max(study.seed for study in studies)} seeds; ± standard error over objectives."
    )
    return "\n\n".join([lead, *(f"### {name}\n\n{text}" for name, text in _tables(regret, gain))])


def _padded(tuner: str, losses: Sequence[float]) -> dict[int, float]:
    """The lowest loss after each trial; before the one value of a tuner there is none, and after the last no better."""
    first = FITS.get(tuner, 1)
    return {t: losses[min(t - first, len(losses) - 1)] if t >= first else np.nan for t in range(1, AT[-1] + 1)}


def _regret(losses: pd.DataFrame) -> pd.DataFrame | None:
    tuners = losses.index.get_level_values("tuner")
    random = losses[1][tuners.isin(["random", "tpe"])]
    least = losses[AT[-1]].min()
    spread = random.median() - least
    if tuners.nunique() < 5 or not spread >= 1e-9:
        return None
    return ((losses - least) / spread).clip(upper=MOST).groupby([*OBJECTIVE, "tuner"], sort=False).mean()


def _tables(regret: pd.DataFrame, gain: pd.Series[float]) -> Iterator[tuple[str, str]]:
    for metric in ("all", *regret.index.unique("metric")):
        part = regret if metric == "all" else regret.xs(metric, level="metric", drop_level=False)
        tuners = {name: one.droplevel("tuner") for name, one in part.groupby("tuner", sort=False)}
        n = len(part.droplevel("tuner").index.unique())
        yield f"Regret, {metric} ({n} objectives)", _regrets(tuners)
        yield f"Pretrained ahead of others by, {metric}", _claims(tuners)
    yield "Models", _models(regret, gain)


def _cells(values: pd.DataFrame, at: Sequence[int]) -> list[str]:
    return [mean_cell(values[t]) if values[t].notna().all() else "" for t in at]


def _regrets(tuners: Mapping[str, pd.DataFrame]) -> str:
    rows = [[f"`{tuner}`", str(len(values)), *_cells(values, AT)] for tuner, values in tuners.items()]
    return markdown_table(["tuner", "objectives", *(f"regret at {t}" for t in AT)], rows)


def _claims(tuners: Mapping[str, pd.DataFrame]) -> str:
    """By how much the pretrained surrogate is ahead of others, after as many trials and after a fifth of theirs."""
    heads = ["other", *(f"both at {t}" for t in SAME), "at 25, pretrained at 5", "not behind there"]
    rows = []
    for tuner, values in tuners.items():
        if tuner != "pretrained":
            own = tuners["pretrained"].reindex(values.index)
            ahead = values[25] - own[5]
            share = 100 * (ahead >= -1e-9).mean()
            rows.append([f"`{tuner}`", *_cells(values - own, SAME), mean_cell(ahead), f"{share:.0f} %"])
    return markdown_table(heads, rows)


def _models(regret: pd.DataFrame, gain: pd.Series[float]) -> str:
    """First suggestions against defaults, and regrets of the tuners, by family."""
    columns = {"default": (1,), "pretrained": (1, 5, 25), "gp": (25,), "tpe": (25,), "random": (25,)}
    rows = []
    for family in [*regret.index.unique("family"), "all"]:
        part = regret if family == "all" else regret.xs(family, level="family")
        first = gain if family == "all" else gain.xs(family, level="family")
        counts = [(first > 1e-9).sum(), (abs(first) <= 1e-9).sum(), (first < -1e-9).sum()]
        cells = [cell for name, at in columns.items() for cell in _cells(part.xs(name, level="tuner"), at)]
        rows.append([family, " / ".join(map(str, counts)), *cells])
    heads = [f"{name} at {t}" for name, at in columns.items() for t in at if name != "default"]
    return markdown_table(["model", "first suggestion better / equal / worse than default", "default", *heads], rows)


def first_table(gains: Iterable[tuple[str, str, Sequence[float]]]) -> str:
    """How often the first suggestion is better than, equal to and worse than the defaults, by family and metric."""
    frame = pd.DataFrame(
        [(*names, gain) for *names, values in gains for gain in values], columns=["model", "metric", "gain"]
    )
    metrics, rows = list(dict.fromkeys(frame["metric"])), []
    for model in [*dict.fromkeys(frame["model"]), "all"]:
        part = frame if model == "all" else frame[frame["model"] == model]
        rows.append([model, *(_counts(part["gain"][part["metric"] == metric]) for metric in metrics)])
    return markdown_table(["model", *metrics], rows)


def _counts(gains: pd.Series[float]) -> str:
    return f"{(gains > 0).sum()} / {(gains == 0).sum()} / {(gains < 0).sum()}" if len(gains) else ""
