"""The check before the kernel is used: launches of the default model on a long history must return known numbers.

The launches have the features that may fail on an untried device: more shared memory than a kernel has by itself,
registers that spill, two blocks on a multiprocessor, and blocks that wait for each other.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.losses import RankedList
from dre_jax.methods.dre.backends.cuda.plan import Limits
from dre_jax.methods.dre.backends.cuda.steps import take_steps
from dre_jax.methods.dre.backends.reference.request import SampledLists
from dre_jax.methods.dre.model.ensemble import EnsembleParams, init
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.optim.adam import Moments, StepSizes

MODEL = ModelConfig(members=2)
_ROWS, _SUPPORT, _COLUMNS, _STEPS = 105, 21, 16, 2
TOLERANCE = 5e-5


class Outcome(NamedTuple):
    """The numbers that the check compares."""

    losses: list[list[float]]
    """Loss of each step and member."""
    norms: list[float]
    """Norms of the first moments of the scorers and of the deep sets."""


EXPECTED = {
    1: Outcome([[98.9234474, 98.8179162], [98.9859361, 98.7409431]], [0.876235500, 0.447800367]),
    2: Outcome([[99.0420866, 98.8254531], [98.9680323, 98.6871920]], [0.897071904, 0.420913626]),
}
"""By the scan in float64, for the number of lists of a step."""


def check_launch(limits: Limits) -> None:
    """Raises an error unless launches of the kernel return known numbers: fine-tuning of many runs, and lists shared.

    The caller may be tracing, and may have settings of JAX that forbid the operations of the check.
    """
    many_runs = limits._replace(multiprocessors=1)
    for lists, device in ((1, many_runs), (2, limits)):
        with plain_settings():
            step = jax.jit(partial(take_steps, MODEL, device, "float32", params_only=False))
            outcome = summary(jax.device_get(step(*problem(lists))))
        for values, expected in zip(map(np.array, outcome), map(np.array, EXPECTED[lists]), strict=True):
            if not np.allclose(values, expected, rtol=TOLERANCE):
                numbers = f"{expected.tolist()}, but gave {values.tolist()}"
                raise ValueError(f"the check of the CUDA kernel must give {numbers}")


@contextmanager
def plain_settings() -> Iterator[None]:
    """Computes at once, on the first accelerator, even if the caller is tracing or has strict settings of JAX."""
    settings = [
        jax.ensure_compile_time_eval(),
        jax.default_device(jax.local_devices()[0]),
        jax.transfer_guard("allow"),
        jax.enable_x64(False),
        jax.disable_jit(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ]
    with ExitStack() as stack:
        for setting in settings:
            stack.enter_context(setting)
        yield


def problem(lists: int) -> tuple[Any, ...]:
    """Returns the arguments of `take_steps` after its sizes, for a number of lists; the same on every machine."""
    draw = np.random.RandomState(0)  # whose numbers never change
    shapes = jax.eval_shape(partial(init, MODEL, _COLUMNS), jax.random.key(0))

    def weights(leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        return draw.uniform(-1, 1, leaf.shape).astype(np.float32) * np.float32(2.0 / np.sqrt(leaf.shape[-2]))

    params = EnsembleParams(*(None if tree is None else {k: weights(tree[k]) for k in sorted(tree)} for tree in shapes))
    zeros = jax.tree.map(np.zeros_like, params)
    x = draw.uniform(0, 1, (_ROWS, _COLUMNS)).astype(np.float32)
    response = np.linspace(1.0, 0.0, _ROWS, dtype=np.float32)
    rows = np.array([draw.permutation(_ROWS) for _ in range(_STEPS * lists)]).reshape(_STEPS, 1, lists, _ROWS)
    support, query = rows[..., :_SUPPORT].astype(np.int32), np.sort(rows[..., _SUPPORT:]).astype(np.int32)
    position = np.broadcast_to(np.arange(_ROWS - _SUPPORT, dtype=np.int32), query.shape)
    weight = (1.0 / np.log(position + 2.0)).astype(np.float32)
    pairs = position // 2 * 2  # pairs are tied
    items = response[query], np.ones(query.shape, bool), weight, pairs, pairs + 1
    where = jnp.ones(support.shape, bool)
    ranked = RankedList(*map(jnp.asarray, items))
    sampled = SampledLists(jnp.asarray(support), where, jnp.asarray(query), ranked)
    sizes = StepSizes(*(jnp.full(_STEPS, 1e-2, jnp.float32) for _ in range(2)))
    return x, response, (params, Moments(zeros, zeros)), sampled, sizes


def summary(result: tuple[tuple[EnsembleParams, Moments], Array]) -> Outcome:
    """Returns the numbers that the check compares, from a result of `take_steps` with its arrays on the host."""
    (_, moments), losses = result
    trees = (tree for tree in moments.first if tree is not None)
    norms = [float(np.sqrt(sum(np.sum(np.square(leaf, dtype=np.float64)) for leaf in tree.values()))) for tree in trees]
    return Outcome([[float(loss) for loss in step] for step in losses], norms)
