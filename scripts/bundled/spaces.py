"""The search spaces, as the shipped `meta-dataset-descriptors.json` declares them, and configurations drawn from them.

A descriptor has HPO-B's keys, and beside them what decoding needs: kind, bounds as declared, levels and conditions.
Rows of tasks and initial designs are drawn by streams that depend on names only.
"""

import zlib
from typing import Any

import numpy as np

from dre_jax.data import bundled
from dre_jax.data.columns import DESCRIPTORS as FILE
from dre_jax.data.files import read_json
from dre_jax.data.raw_columns import LOG_OFFSET
from dre_jax.data.scale import Scale
from dre_jax.space.descriptors import from_descriptor
from dre_jax.space.space import Params
from dre_jax.tuning import Categorical, Float, Int, Space

DESCRIPTORS: dict[str, dict[str, Any]] = read_json(bundled.path() / f"{FILE}.json")
SPACES: dict[str, Space] = {name: from_descriptor(descriptor) for name, descriptor in DESCRIPTORS.items()}
SEED = 7
DECIMALS = 4
"""Rows are rounded before they are evaluated, so that the stored row is the configuration that gave the response."""
SHARED, FRESH = 56, 200
"""Rows of a task: configurations that every task of the space has, and ones of its own."""
DESIGNS, DESIGN_ROWS = 5, 5


def sample(space: Space, rng: np.random.Generator) -> Params:
    """A configuration, uniform on the encoded scale."""
    levels: Params = {
        n: str(rng.choice([*map(str, p.choices)])) for n, p in space.items() if isinstance(p, Categorical)
    }
    # Every number is drawn, active or not, so that the stream does not depend on the levels.
    numbers = {n: _draw(p, rng) for n, p in space.items() if not isinstance(p, Categorical)}  # type: ignore[arg-type]
    active: Params = {
        n: x for n, x in numbers.items() if all(levels[parent] in choices for parent, choices in space[n].when)
    }
    return levels | active


def _draw(parameter: Float | Int, rng: np.random.Generator) -> float:
    if isinstance(parameter, Float):
        x = Scale(parameter.low, parameter.high, parameter.log, LOG_OFFSET).from_unit(rng.uniform())
        return float(np.clip(x, parameter.low, parameter.high))
    if not parameter.log:
        return int(rng.integers(parameter.low, parameter.high + 1))
    # Log-uniform over half a step more than the bounds, so that both ends get their share.
    return round(float(np.exp(rng.uniform(np.log(parameter.low - 0.499), np.log(parameter.high + 0.499)))))


def decode(name: str, row: list[float]) -> Params:
    """A row's configuration by the formula of PROVENANCE.md, to the last bit: sizes of sub-samples are steps."""
    space, variables = SPACES[name], DESCRIPTORS[name]["variables"]
    params = space.decode(row)
    for column, u in zip(space.columns, row, strict=True):
        parameter = space.get(column.name)
        if isinstance(parameter, Float) and column.name in params:
            low, high = (variables[column.name][end] for end in ("min", "max"))
            t = low + u * (high - low)
            x = np.exp(t) - LOG_OFFSET if parameter.log else t
            params[column.name] = float(np.clip(x, parameter.low, parameter.high))
    return params


def stream(*names: str) -> np.random.Generator:
    """A random stream that does not depend on the order in which things are made."""
    return np.random.default_rng([SEED, *(zlib.crc32(name.encode()) for name in names)])


def task_rows(name: str, task: str, shared: int = SHARED, fresh: int = FRESH) -> list[list[float]]:
    """The rows of a task in random order: the order says nothing of the response, nor of which ones are shared."""
    rng, rows = stream(name, task), list[list[float]]()
    for count, source in ((shared, stream(name, "shared")), (shared + fresh, rng)):
        while len(rows) < count:
            row = np.round(SPACES[name].encode(sample(SPACES[name], source)), DECIMALS).tolist()
            if row not in rows:
                rows.append(row)
    return [rows[i] for i in rng.permutation(len(rows))]


def designs(space: str, task: str, count: int) -> dict[str, list[int]]:
    rng = stream(space, task, "designs")
    return {f"test{i}": rng.choice(count, DESIGN_ROWS, replace=False).tolist() for i in range(DESIGNS)}
