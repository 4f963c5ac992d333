"""Operations and bytes that a step needs at least, and the peak rates of this machine: the floor under its time.

The count is of the cheapest way to the same numbers: a deep set's last layer before the mean is linear, so it is
applied to the mean; a context meets the scorer's first layer once a list, not once a row; nothing is differentiated by
the configurations. Parameters and moments are assumed to stay in the caches from step to step.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.methods.dre.model.ensemble import init
from dre_jax.methods.dre.model.model_config import ModelConfig

_FLOAT = 4
_ADAM = 12  # operations for a parameter: two means, their bias corrections, a root, a quotient, a step
_LIST_MLE = 8  # for an item: exponential, two running sums, a quotient, a product, three differences


class Work(NamedTuple):
    """The work that cannot be avoided."""

    flops: float
    bytes: float
    """To and from main memory."""

    def seconds(self, matrix_rate: float, copy_rate: float) -> float:
        """Returns the least time at so many operations and bytes a second."""
        return max(self.flops / matrix_rate, self.bytes / copy_rate)


Layers = list[tuple[int, int]]
"""Inputs and outputs of each."""


def _layers(model: ModelConfig, n_columns: int) -> tuple[Layers, Layers, Layers]:
    """Returns phi, whose last layer comes after the mean; rho; and the scorer without the context."""
    phi, rho = (n_columns + 1, *model.phi), (model.phi[-1], *model.rho)
    return list(pairwise(phi)), list(pairwise(rho)), list(pairwise((n_columns, *model.hidden, 1)))


@cache
def n_parameters(model: ModelConfig, n_columns: int) -> int:
    """Returns the number of parameters of all members."""
    shapes = jax.eval_shape(lambda: init(model, n_columns, jax.random.key(0)))
    return int(sum(leaf.size for leaf in jax.tree.leaves(shapes)))


def _products(layers: Layers, rows: int, *, backward: bool, first_has_gradient: bool = False) -> int:
    """Returns the operations of the matrix products: forward; backward for kernels, and for inputs but the first's."""
    once = [2 * rows * inputs * outputs for inputs, outputs in layers]
    for_inputs = once if first_has_gradient else once[1:]
    return sum(once) + (sum(once) + sum(for_inputs)) * backward


def products(
    model: ModelConfig, n_columns: int, support: int, query: int, *, lists: int = 1, backward: bool = True
) -> int:
    """Returns the operations of the matrix products of all members, each with so many lists."""
    phi, rho, scorer = _layers(model, n_columns)
    total = model.members * _products(scorer, lists * query, backward=backward)
    if model.context == "none":
        return total
    joint = [(model.rho[-1], model.hidden[0])]
    context = _products(joint, lists, backward=backward, first_has_gradient=True)
    deep = _products(phi[:-1], lists * support, backward=backward)
    deep += _products([phi[-1], *rho], lists, backward=backward, first_has_gradient=len(phi) > 1)
    return total + model.members * context + {"own": model.members, "shared": 1, "none": 0}[model.context] * deep


def step(model: ModelConfig, n_columns: int, support: int, query: int, *, lists: int = 1) -> Work:
    """Returns the work of a training step: gradient of the loss, and Adam. Bytes: the rows that it reads."""
    flops = products(model, n_columns, support, query, lists=lists)
    flops += _ADAM * n_parameters(model, n_columns) + _LIST_MLE * model.members * lists * query
    rows = lists * model.members * (support * (n_columns + 1) + query * n_columns)
    return Work(flops, _FLOAT * rows)


def trial(model: ModelConfig, n_columns: int, history: int, candidates: int, epochs: int) -> Work:
    """Returns the work of a trial: fine-tuning, then scores of all candidates. Bytes: what it reads once, values."""
    support = max(1, history // 5)
    epoch = step(model, n_columns, support, history - support)
    flops = epochs * epoch.flops + products(model, n_columns, history, candidates + 1, backward=False)
    read = n_parameters(model, n_columns) + (history + candidates) * (n_columns + 1) + candidates
    return Work(flops, _FLOAT * read)


def run(model: ModelConfig, n_columns: int, design: int, trials: int, candidates: int, epochs: int) -> Work:
    """Returns the work of a whole run; every trial reads the candidates anew."""
    each = [trial(model, n_columns, design + t, candidates, epochs) for t in range(trials)]
    return Work(*map(sum, zip(*each, strict=True)))


class Rates(NamedTuple):
    """Measured with all cores, or on the accelerator."""

    flops: float
    """float32 operations a second of a matrix product, nothing rounded to less."""
    bytes: float
    """Bytes a second of a copy, read and written."""


def time_calls(work: Callable[[], Any], repeats: int) -> tuple[float, list[float]]:
    """Returns the seconds of the first call, and of each of the later ones."""
    seconds = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        seconds.append(time.perf_counter() - begin)
    return seconds[0], seconds[1:]


def peak_rates(cores: int) -> Rates:
    """Returns the better rates of JAX and NumPy, in this process and on these cores."""
    on_cpu = jax.devices()[0].platform == "cpu"
    n, length = (2048, 2**25) if on_cpu else (8192, 2**29)
    a, b = jnp.ones((n, n), jnp.float32), jnp.zeros(length, jnp.float32)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision=jax.lax.Precision.HIGHEST))
    copy = jax.jit(lambda b: b + 1.0)

    def shortest(work: Callable[[], Any]) -> float:
        return min(time_calls(work, 7)[1])

    seconds, copies = [shortest(lambda: product(a))], [shortest(lambda: copy(b))]
    if on_cpu:
        host, source = np.ones((n, n), np.float32), np.zeros(length, np.float32)
        seconds.append(shortest(lambda: host @ host))
        parts = list(zip(np.array_split(np.empty_like(source), cores), np.array_split(source, cores), strict=True))
        with ThreadPoolExecutor(cores) as pool:
            copies.append(shortest(lambda: list(pool.map(lambda pair: np.copyto(*pair), parts))))
    return Rates(2 * n**3 / min(seconds), 8 * length / min(copies))
