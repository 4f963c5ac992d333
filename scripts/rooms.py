"""The picture of the rooms: the subpackages of `dre_jax`, who imports whom, and two ways of data through them."""

import ast
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

PACKAGE = Path(__file__).parents[1] / "dre_jax"
ROOMS = {  # what each is for; the modules errors and checks, which all import, are not drawn
    "cli": "commands",
    "functions": "many searches in JAX",
    "tuning": "live studies",
    "hpob": "HPO-B's protocol",
    "report": "comparisons",
    "suggest": "next configuration",
    "space": "search spaces",
    "methods": "fit and acquire",
    "gp": "Gaussian processes",
    "search": "histories, trials",
    "nn": "networks",
    "data": "files, tables, results",
    "losses": "over lists",
    "optim": "Adam, BFGS",
    "native": "C++ for CPUs",
    "runtime": "devices, caches",
}
WAYS = {
    "a benchmark: tables, meta-training, runs, report": ("data", "methods", "search", "hpob", "report"),
    "a live study: past studies, fit, suggestion": ("tuning", "methods", "suggest", "tuning"),
}
"""Rooms that data go through, in order."""


def imports() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    result: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        targets = {(node.module or "").removeprefix("dre_jax.").split(".")[0] for node in nodes}
        if room in ROOMS:
            result[room] |= {target for target in targets if target in ROOMS} - {room}
    return result


def levels(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """Each room's height: one above the highest that it imports."""

    @cache
    def level(room: str) -> int:
        return 1 + max(map(level, graph[room]), default=-1)

    return {room: level(room) for room in graph}


def nearest(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The same without what a room also imports through another one."""
    reach: dict[str, set[str]] = {}
    for room in sorted(graph, key=levels(graph).__getitem__):
        reach[room] = graph[room].union(*(reach[target] for target in graph[room]))
    return {room: targets - set().union(*(reach[target] for target in targets)) for room, targets in graph.items()}


def paint(figure: Figure, theme: Any) -> None:
    """Draws rooms as boxes, imports as thin arrows downwards, and the ways as thick ones."""
    graph = imports()
    height = levels(graph)
    rows = [[room for room in ROOMS if height[room] == level] for level in range(max(height.values()) + 1)]
    place = {room: ((i + 0.5) / len(row), float(level)) for level, row in enumerate(rows) for i, room in enumerate(row)}
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(-0.5, len(rows) - 0.5))
    axes.axis("off")

    def arrow(start: str, end: str, **style: Any) -> None:
        axes.annotate("", place[end], place[start], arrowprops={"shrinkA": 16, "shrinkB": 16} | style)

    for room, targets in nearest(graph).items():
        for target in sorted(targets):
            arrow(room, target, arrowstyle="->", color=theme.faint, lw=1.2)
    for colour, bend, (label, way) in zip(theme.colours, (0.25, -0.25), WAYS.items(), strict=False):
        axes.plot([], [], color=colour, lw=2.2, label=label)
        for start, end in pairwise(way):
            arrow(start, end, arrowstyle="-|>", color=colour, lw=2.2, connectionstyle=f"arc3,rad={bend}")
    for room, (x, y) in place.items():
        text = f"{room}/\n{ROOMS[room]}"
        edge = {"boxstyle": "round,pad=0.35", "facecolor": theme.page, "edgecolor": theme.ink, "lw": 1}
        axes.text(x, y, text, ha="center", va="center", size=8.5, bbox=edge)
    figure.legend(loc="outside lower center", ncols=1)
