"""Test tasks on which the past misleads: what methods lose there, beside one that has no past."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from markdown_tables import markdown_table, regret_cells

from dre_jax.report import Comparison

GUARD = "gp"
"""Learns nothing from past tasks, and so cannot be misled."""

_TOP = f"""\
Test tasks whose responses are reversed, or dealt out to other rows, optimised by methods that learned from the true
past (`scripts/compare_methods.py --reverse` or `--permute`).
Regret is the mean over tasks, ± its standard error over tasks. Beside it stands the difference to `{GUARD}`, paired by
task, in units of that difference's own standard error, at 10 trials and more. The guard is kept where none of these is
above one: with such a past, a method is no worse than `{GUARD}`, which has none. Sorted by the last regret."""


def misled_page(title: str, command: str, comparisons: Mapping[str, Comparison], at: Sequence[int]) -> str:
    """A section for each way to mislead; in it a table of all tasks and one of each search space."""
    parts = [f"# {title}", textwrap.fill(_TOP, 120), textwrap.fill(f"`{command}`.", 120)]
    for how, comparison in comparisons.items():
        parts += [f"## {how.capitalize()}", _facts(comparison), guard_table(comparison, at)]
        for space in comparison.spaces:
            part = comparison.of_space(space)
            parts += [f"### {space}", _facts(part), guard_table(part, at)]
    return "\n\n".join(parts) + "\n"


def _facts(comparison: Comparison) -> str:
    return f"{len(comparison.runs)} runs a method, {len(set(comparison.tasks))} tasks."


def behind(comparison: Comparison) -> npt.NDArray[np.float64]:
    """f64[methods, T + 1]: mean regret less the guard's in standard errors of the difference, paired by task.

    It is 0 where they are equal on all tasks, infinite where all tasks differ alike, NaN with a single task.
    """
    less = comparison._replace(regret=comparison.rounded()).relative_to(GUARD)
    difference, error = less.average_regret(), less.standard_error()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((difference == 0) & (error == 0), 0.0, difference / error)


def guard_table(comparison: Comparison, at: Sequence[int]) -> str:
    """Regret with its standard error, by how much it is behind the guard, and whether that is within one error."""
    late = [t for t in at if t >= 10]
    regrets, less = list(regret_cells(comparison, at)), behind(comparison)[:, late]
    heads = ["method", *(f"regret at {t}" for t in at), *(f"less {GUARD}'s at {t}" for t in late), "guard"]
    rows = []
    for i in np.argsort(comparison.average_regret()[:, at[-1]], kind="stable"):
        name = comparison.methods[i]
        judged = [*(f"{errors:+.1f}" for errors in less[i]), _verdict(less[i])]
        rows.append([f"`{name}`", *regrets[i], *([""] * len(judged) if name == GUARD else judged)])
    return markdown_table(heads, rows)


def _verdict(errors: npt.NDArray[np.float64]) -> str:
    if not errors.size or np.isnan(errors).any():
        return "–"
    # Rounded, as where a single task differs the difference is its standard error.
    return "kept" if (np.round(errors, 8) <= 1).all() else "**broken**"
