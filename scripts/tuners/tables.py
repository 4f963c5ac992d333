"""Tables of studies: ranks and values of what was best so far, and tests over objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markdown_tables import markdown_table
from scipy.stats import rankdata

from dre_jax.report.statistics import signed_rank

_TOP = """\
# Tuners compared

Made by `{command}`; do not edit by hand.

`dre-surrogate` is `DRESampler` with the recommended method, meta-trained on the bundled training tasks of the
model; `dre` is `DRESampler` that knows no past task; the others are Optuna's `TPESampler`, `GPSampler` and
`RandomSampler` as they come, which begin with ten random trials, the same for one seed. All start from nothing.
The live models are those of the bundled search spaces, cross-validated on problems of which no training task
has a row.
"""

Studies = Mapping[tuple[str, str, int], Sequence[float]]
"""Values by objective, tuner and seed."""


def page(studies: Studies, tuners: Sequence[str], at: Sequence[int], command: str) -> str:
    """All tables: models and functions apart."""
    names = sorted({name for name, _, _ in studies})
    live, functions = [n for n in names if "/" in n], [n for n in names if "/" not in n]
    parts = [_TOP.format(command=command).rstrip()]
    for title, chosen in (("Live models", live), ("Functions", functions)):
        here = [tuner for tuner in tuners if any((n, tuner, 0) in studies for n in chosen)]
        if chosen and len(here) > 1:
            parts.append(f"## {title}\n\n{section(studies, chosen, here, at)}")
    return "\n\n".join(parts) + "\n"


def section(studies: Studies, names: Sequence[str], tuners: Sequence[str], at: Sequence[int]) -> str:
    """Ranks, values and tests on some objectives."""
    best = np.stack([_best(studies, name, tuners) for name in names])  # objectives, tuners, seeds, trials
    at = [t for t in at if t <= best.shape[-1]]
    ranks = rankdata(-best, axis=1).mean(axis=2)
    values = best.mean(axis=2)
    heads = ["tuner", *(f"rank at {t}" for t in at), *(f"value at {t}" for t in at)]
    rows = [
        [f"`{tuner}`", *(_cell(ranks[:, i, t - 1], 2) for t in at), *(_cell(values[:, i, t - 1], 3) for t in at)]
        for i, tuner in enumerate(tuners)
    ]
    scale = "value: best so far, 0 the worst and 1 the best value that any study of the objective met"
    text = f"{len(names)} objectives, {best.shape[2]} seeds; {scale}; ± standard error over objectives."
    text += f"\n\n{markdown_table(heads, rows)}"
    for i, tuner in enumerate(tuners):
        if not tuner.startswith("dre"):
            continue
        tests = [
            [f"`{other}`", *(_test(values[:, i, t - 1], values[:, j, t - 1]) for t in at)]
            for j, other in enumerate(tuners)
            if j != i
        ]
        lead = f"`{tuner}` against the others: mean difference in value, p of the signed-rank test over objectives."
        text += f"\n\n{lead}\n\n{markdown_table(['against', *(f'at {t}' for t in at)], tests)}"
    return text


def _best(studies: Studies, name: str, tuners: Sequence[str]) -> np.ndarray:
    """Best so far, scaled; [tuners, seeds, trials]."""
    everything = np.concatenate([values for (n, _, _), values in studies.items() if n == name])
    low, high = everything.min(), everything.max()
    seeds = sorted({seed for n, _, seed in studies if n == name})
    raw = np.array([[studies[name, tuner, seed] for seed in seeds] for tuner in tuners])
    return (np.maximum.accumulate(raw, axis=-1) - low) / (high - low)


def _cell(values: np.ndarray, digits: int) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def _test(ours: np.ndarray, theirs: np.ndarray) -> str:
    p = signed_rank(ours, theirs)
    return f"{(ours - theirs).mean():+.3f} ({'p < 0.001' if p < 0.001 else f'p {p:.3f}'})"
