"""One task of one space: draw configurations, evaluate them, keep the result in a cache so that a run can go on."""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn

from .scoring import response
from .spaces import Space
from .tasks import Problem

SEED = 7
RESPONSE_DECIMALS = 6
CACHE_VERSION = 1
"""Raise it when the score changes: results in a cache are then made again."""


@dataclass(frozen=True)
class Sizes:
    """Rows a task: `shared` configurations that every task of the space has, and `fresh` ones of its own."""

    shared: int
    fresh: int


@dataclass(frozen=True)
class Result:
    rows: list[list[float]]
    responses: list[float]
    seconds: float


def stream(*names: str) -> np.random.Generator:
    """A random stream that depends on the names only, not on the order in which things are made."""
    return np.random.default_rng([SEED, *(zlib.crc32(name.encode()) for name in names)])


def draw(space: Space, count: int, rng: np.random.Generator, taken: set[tuple[float, ...]]) -> list[list[float]]:
    """`count` new encoded configurations; adds them to `taken`."""
    rows: list[list[float]] = []
    while len(rows) < count:
        row = space.encode(space.sample(rng))
        if tuple(row) not in taken:
            taken.add(tuple(row))
            rows.append(row)
    return rows


def shared_rows(space: Space, sizes: Sizes) -> list[list[float]]:
    return draw(space, sizes.shared, stream(space.name, "shared"), set())


def task_rows(space: Space, problem: Problem, sizes: Sizes) -> list[list[float]]:
    """The rows of a task in random order: the order says nothing of the response, nor of which ones are shared."""
    common = shared_rows(space, sizes)
    rng = stream(space.name, problem.name)
    rows = common + draw(space, sizes.fresh, rng, {tuple(row) for row in common})
    return [rows[i] for i in rng.permutation(len(rows))]


def fingerprint(space: Space, problem: Problem, rows: list[list[float]]) -> str:
    digest = hashlib.sha256(json.dumps([CACHE_VERSION, sklearn.__version__, space.descriptor(), rows]).encode())
    digest.update(problem.features.tobytes() + problem.target.tobytes())
    return digest.hexdigest()


def evaluate(space: Space, problem: Problem, sizes: Sizes, cache: Path) -> tuple[Result, bool]:
    """The result, and whether it came from the cache."""
    rows = task_rows(space, problem, sizes)
    mark, file = fingerprint(space, problem, rows), cache / space.name / f"{problem.name}.json"
    if file.exists():
        kept = json.loads(file.read_text())
        if kept["fingerprint"] == mark:
            return Result(rows, kept["responses"], kept["seconds"]), True
    start = time.perf_counter()
    responses = [round(response(space.name, space.decode(row), problem), RESPONSE_DECIMALS) for row in rows]
    seconds = time.perf_counter() - start
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps({"fingerprint": mark, "responses": responses, "seconds": seconds}))
    partial.replace(file)
    return Result(rows, responses, seconds), False
