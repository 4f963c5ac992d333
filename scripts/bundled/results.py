"""From tasks to files: rows drawn and evaluated, kept in a cache so that a run can go on, checked, written."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn

from dre_jax.data.files import make_folder, read_json, write_json

from .scoring import response
from .spaces import DESCRIPTORS, SPACES, decode, sample
from .tasks import Problem

SEED = 7
DECIMALS = 4
"""Rows are rounded before they are evaluated, so that the stored row is the configuration that gave the response."""
RESPONSE_DECIMALS = 6
CACHE_VERSION = 2
"""Raise it when the score changes: results in a cache are then made again."""
BEST_SHARE = 0.05
DESIGNS, DESIGN_ROWS = 5, 5


class Sizes(NamedTuple):
    """Rows a task: `shared` configurations that every task of the space has, and `fresh` ones of its own."""

    shared: int
    fresh: int


class Result(NamedTuple):
    rows: list[list[float]]
    responses: list[float]
    seconds: float

    def best_share(self) -> float:
        return self.responses.count(max(self.responses)) / len(self.responses)


Results = dict[str, dict[str, dict[str, Result]]]
"""By space, then split, then task."""


def stream(*names: str) -> np.random.Generator:
    """A random stream that depends on the names only, not on the order in which things are made."""
    return np.random.default_rng([SEED, *(zlib.crc32(name.encode()) for name in names)])


def draw(name: str, count: int, rng: np.random.Generator, taken: list[list[float]]) -> list[list[float]]:
    """`count` new encoded configurations of a space, behind those that are taken."""
    rows = list(taken)
    while len(rows) < len(taken) + count:
        row = np.round(SPACES[name].encode(sample(SPACES[name], rng)), DECIMALS).tolist()
        if row not in rows:
            rows.append(row)
    return rows


def shared_rows(name: str, sizes: Sizes) -> list[list[float]]:
    return draw(name, sizes.shared, stream(name, "shared"), [])


def task_rows(name: str, task: str, sizes: Sizes) -> list[list[float]]:
    """The rows of a task in random order: the order says nothing of the response, nor of which ones are shared."""
    rng = stream(name, task)
    rows = draw(name, sizes.fresh, rng, shared_rows(name, sizes))
    return [rows[i] for i in rng.permutation(len(rows))]


def evaluate(name: str, problem: Problem, sizes: Sizes, cache: Path) -> Result:
    """A task's result, from the cache where it is there; another result has another file."""
    rows = task_rows(name, problem.name, sizes)
    facts = json.dumps([CACHE_VERSION, sklearn.__version__, DESCRIPTORS[name], rows]).encode()
    mark = hashlib.sha256(facts + problem.features.tobytes() + problem.target.tobytes()).hexdigest()[:16]
    file = cache / name / f"{problem.name}-{mark}.json"
    if not file.exists():
        start = time.perf_counter()
        responses = [round(response(name, decode(name, row), problem), RESPONSE_DECIMALS) for row in rows]
        make_folder(file.parent)
        write_json(file, {"responses": responses, "seconds": time.perf_counter() - start})
    return Result(rows, **read_json(file))


def check(name: str, result: Result, limit: float = BEST_SHARE) -> None:
    """Promises of the dataset about a task."""
    y = np.asarray(result.responses)
    if not np.isfinite(y).all():
        raise ValueError(f"responses must be finite, but {name} has {int((~np.isfinite(y)).sum())} that are not")
    if y.max() == y.min():
        raise ValueError(f"responses must differ, but {name} has {y.max()} everywhere")
    if result.best_share() > limit:
        given = f"{result.best_share():.1%} do in {name}"
        raise ValueError(f"at most {limit:.0%} of the rows may share the best value, but {given}")
    if len(np.unique(result.rows, axis=0)) < len(result.rows):
        raise ValueError(f"configurations must differ, but {name} has one twice")


def write(folder: Path, results: Results) -> None:
    """Writes all files, in HPO-B v3's layout."""
    make_folder(folder)
    for split in ("train", "validation", "test"):
        tables = {
            space: {
                task: {"X": result.rows, "y": [[value] for value in result.responses]}
                for task, result in splits[split].items()
            }
            for space, splits in results.items()
        }
        _write_gz(folder / f"meta-{split}-dataset.json.gz", tables)
    designs = {
        space: {
            task: _designs(space, task, len(result.rows))
            for split in ("validation", "test")
            for task, result in splits[split].items()
        }
        for space, splits in results.items()
    }
    _write_gz(folder / "bo-initializations.json.gz", designs)
    write_json(folder / "meta-dataset-descriptors.json", DESCRIPTORS, indent=1)


def _designs(space: str, task: str, count: int) -> dict[str, list[int]]:
    rng = stream(space, task, "designs")
    return {f"test{i}": rng.choice(count, DESIGN_ROWS, replace=False).tolist() for i in range(DESIGNS)}


def _write_gz(path: Path, content: Any) -> None:
    """The same bytes for the same content: no file name, no time stamp."""
    text = json.dumps(content, separators=(",", ":"))
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=9, mtime=0) as packed:
        packed.write(text.encode())
