"""The motivating example's figures (the paper, Figures 2 to 4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dre_jax import Task
from dre_jax.report.style import COLOURS, style
from dre_jax.report.style import save as save_with_look
from papers.inside import Inside
from papers.sinusoid import TRAIN_SHIFTS, X, sinusoid
from papers.transfer import Traces, trials_to_reach

TRUE, BEST, OBSERVED, NEXT, EI = "0.45", COLOURS[0], COLOURS[2], COLOURS[1], COLOURS[3]
PLACES = (OBSERVED, NEXT, BEST)
MOST_STEPS = 5
LOOK: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
}


def _function(axes: Any, task: Task, step: Inside) -> None:
    axes.plot(X, task.y, color=TRUE, lw=1.2, label="true function")
    axes.plot(X[step.rows], task.y[step.rows], "o", color=OBSERVED, ms=5.5, label="observed")
    axes.plot(X[step.chosen], task.y[step.chosen], "*", color=NEXT, ms=11, mec="black", mew=0.5, label="next")


def _improvement(axes: Any, step: Inside) -> None:
    """Expected improvement, scaled to a maximum of 1, and its maximum."""
    counts = np.isfinite(step.log_ei)
    values = np.exp(step.log_ei[counts] - step.log_ei[counts].max())
    axes.fill_between(X[counts], 0, values, color=EI, alpha=0.35, lw=0)
    axes.plot(X[counts], values, color=EI, lw=1.2, label="expected improvement (scaled)")
    axes.axvline(X[step.chosen], color=NEXT, lw=1, ls="--")


def draw_steps(task: Task, steps: list[Inside], folder: Path, name: str) -> None:
    """A run, step by step: observations, mean rank with its deviation, expected improvement and choice."""
    numbered = list(enumerate(steps, start=1))
    shown = [*numbered[: MOST_STEPS - 1], *numbered[MOST_STEPS - 1 :][-1:]]

    def paint(figure: Any) -> None:
        grid = figure.subplots(3, len(shown), sharex=True, sharey="row", height_ratios=(3, 3, 2), squeeze=False)
        for (function, rank, ei), (number, step) in zip(grid.T, shown, strict=True):
            function.set_title(f"step {number}: {len(step.rows)} observed")
            _function(function, task, step)
            x, mean, deviation = (a[step.ranked] for a in (X, step.mean, step.deviation))
            band = {"color": BEST, "alpha": 0.2, "lw": 0, "label": "± deviation over members"}
            rank.fill_between(x, mean - deviation, mean + deviation, **band)
            rank.plot(x, mean, color=BEST, lw=1.4, label="mean rank")
            rank.axvline(X[step.chosen], color=NEXT, lw=1, ls="--")
            _improvement(ei, step)
            ei.set_xlabel("x")
        grid[0, 0].set_ylabel("y (maximised)")
        grid[1, 0].set_ylabel("rank (1 is best)")
        grid[1, 0].invert_yaxis()
        grid[2, 0].set_ylabel("EI / max EI")
        _legend(figure, grid[:, 0], ncols=3)

    save((2.05 * len(shown) + 0.9, 5.4), paint, folder, name)


def _legend(figure: Any, axes: Any, ncols: int) -> None:
    entries = [pair for a in axes for pair in zip(*a.get_legend_handles_labels(), strict=True)]
    unique = {label: handle for handle, label in entries}
    figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=ncols)


def draw_outputs(task: Task, step: Inside, folder: Path, name: str) -> None:
    """Members' scores and ranks: over x, each member's distribution over x, and over members at three places."""
    x = X[step.ranked]
    best = step.rows[np.argmax(task.y[step.rows])]
    near = np.minimum(abs(X - X[best]), abs(X - X[step.chosen])) < 2.0
    uncertain = np.nanargmax(np.where(near, np.nan, step.deviation))
    places = {"best observed": X[best], "next": X[step.chosen], "least certain": X[uncertain]}
    titles = ("outputs over x", "each member's distribution over x", "distribution over members at three x")

    def paint(figure: Any) -> None:
        grid = figure.subplots(2, 3, width_ratios=(4, 3.4, 3.4))
        for row, kind, values in zip(grid, ("score", "rank"), (step.scores, step.ranks), strict=True):
            curves, distributions, bars = row
            ranked = values[:, step.ranked]
            for m, member in enumerate(ranked):
                curves.plot(x, member, color=style(m).colour, ls=style(m).dash, lw=1)
            for place, colour in zip(places.values(), PLACES, strict=True):
                curves.axvline(place, color=colour, lw=1.2, ls=":")
            curves.set(xlabel="x", ylabel=f"{kind} of each member")
            _distributions(distributions, ranked)
            distributions.set(xlabel="member", ylabel=kind)
            _over_members(bars, ranked, x, places)
            bars.set(xlabel=f"{kind}", ylabel="members")
        for axes, title in zip(grid[0], titles, strict=True):
            axes.set_title(title)
        for axes in grid[1, :2]:
            axes.invert_yaxis()
        _legend(figure, grid[:1, 2], ncols=3)

    save((10.0, 5.6), paint, folder, name)


def _distributions(axes: Any, values: np.ndarray) -> None:
    """A histogram of each member's values, upright on its number, each as wide as its highest bar; median in black."""
    edges = np.linspace(values.min(), values.max(), 25)
    for m, member in enumerate(values):
        count, _ = np.histogram(member, edges)
        half = np.repeat(0.42 * count / count.max(), 2)
        height = np.repeat(edges, 2)[1:-1]
        axes.fill_betweenx(height, m + 1 - half, m + 1 + half, color=style(m).colour, alpha=0.6, lw=0)
        axes.plot([m + 0.6, m + 1.4], [np.median(member)] * 2, color="black", lw=1.2)
    axes.set_xticks(range(1, len(values) + 1))
    axes.grid(axis="x", visible=False)


def _over_members(axes: Any, values: np.ndarray, x: np.ndarray, places: dict[str, float]) -> None:
    at = [values[:, np.searchsorted(x, place)] for place in places.values()]
    labels = [f"{label}, x = {place:.1f}" for label, place in places.items()]
    edges = np.linspace(values.min(), values.max(), 11)
    _, _, groups = axes.hist(at, edges, color=PLACES, label=labels, ec="black", lw=0.4)
    for group, hatch in zip(groups, ("", "////", "...."), strict=True):
        for bar in group:
            bar.set_hatch(hatch)
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, len(values))


def draw_transfer(task: Task, step: Inside, traces: Traces, folder: Path, name: str) -> None:
    """The tasks, the first step of the meta-trained ensemble, and how soon every method is at the optimum."""

    def paint(figure: Any) -> None:
        grid = figure.subplots(2, 2)
        (tasks, first), reached = grid
        for i, shift in enumerate(TRAIN_SHIFTS):
            look = style(i + 1)
            tasks.plot(X, sinusoid(shift), color=look.colour, ls=look.dash, lw=1.1, label=f"β = {shift:g}")
        tasks.plot(X, task.y, color=BEST, lw=2.4, label="test: β = 8")
        tasks.set(title="five training tasks and the test task", xlabel="x", ylabel="y (maximised)", ylim=(-1.05, 1.75))
        tasks.legend(ncols=3, loc="upper center")
        _function(first, task, step)
        below = first.inset_axes((0, 0, 1, 0.22))
        _improvement(below, step)
        below.axis("off")
        first.lines[-1].set_zorder(5)
        first.set(title="meta-trained, first trial on β = 8", xlabel="x", ylabel="y (maximised)", ylim=(-1.75, 1.75))
        handles = [*first.get_legend_handles_labels()[0], *below.get_legend_handles_labels()[0]]
        first.legend(handles, [h.get_label() for h in handles], ncols=2, loc="upper center")
        for axes, (dataset, methods) in zip(reached, traces.items(), strict=True):
            _reached(axes, methods)
            axes.set_title(f"{dataset.replace('beta', 'β')}: within 1 % of the optimum")
        reached[0].legend(loc="lower right")

    save((9.6, 6.8), paint, folder, name)


def _reached(axes: Any, methods: dict[str, np.ndarray]) -> None:
    for i, (name, incumbents) in enumerate(methods.items()):
        trials = np.arange(incumbents.shape[1])
        share = (trials_to_reach(incumbents)[:, None] <= trials[None, :]).mean(axis=0)
        axes.step(trials, share, where="post", color=style(i).colour, ls=style(i).dash, lw=1.8, label=name)
    axes.set(xlabel="trials after three initial observations", ylabel="share of runs")
    axes.set(ylim=(-0.02, 1.03), xlim=(0, None))


def save(size: tuple[float, float], paint: Callable[[Any], None], folder: Path, name: str) -> None:
    """Paints a figure of `size` inches into NAME.png and NAME.svg."""

    def with_look(figure: Any) -> None:
        import matplotlib

        with matplotlib.rc_context(LOOK):
            paint(figure)

    save_with_look(size, with_look, *(folder / f"{name}.{suffix}" for suffix in ("png", "svg")))
