"""Feeds of meta-training: tables of past tasks on every device, or streamed from the host.

A table that does not fit in a device's memory stays on the host. There, the same function with the same key and step
draws the lists. Their rows are copied to the devices while these compute the portion before, so that the devices hold
at most two portions. Results do not depend on the feed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from math import prod

import jax
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding

from dre_jax.data.sampling import ListRows, TaskSpans, sample_lists
from dre_jax.data.spaces import Task
from dre_jax.data.tasks import TaskTable, build_table
from dre_jax.methods.dre.host_table import GatheredRows, HostTable
from dre_jax.methods.dre.lists import draw_steps_bits, lists_shape
from dre_jax.methods.dre.mesh import lists_spec, put_on_first, replicate
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.steps import evaluation_bits
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.runtime import devices

SHARE = 1 / 3
"""Share of a device's memory that tables may take; a TPU's program takes half as much again for itself."""

LISTS_AT_ONCE = 500
"""Number of lists that a thread draws and reads in one call: large, so that the cost of a call does not matter."""

PORTION_BYTES = 2**28
"""Maximum size of the rows of a portion of several steps."""

Portions = Iterable[tuple[int, int]]
"""First step and number of steps of each."""


def must_stream(*tables: Mapping[str, Task]) -> bool:
    """Returns whether tables take more than a third of a device's memory; on a CPU, which has the host's, never."""
    stats = [device.memory_stats() or {} for device in devices.local()]
    limits = [stat["bytes_limit"] for stat in stats if "bytes_limit" in stat]
    tasks = [task for table in tables for task in table.values()]
    return bool(limits) and sum(map(_bytes_on_device, tasks)) > SHARE * min(limits)


def _bytes_on_device(task: Task) -> int:
    """Returns the bytes of features, in columns that a TPU pads to a multiple of eight, responses and levels."""
    return 4 * task.n_rows * (-(-task.n_columns // 8) * 8 + 2)


class ResidentFeed:
    """The rows that training reads, in a whole table on every device."""

    most: int | None = None
    """Maximum number of steps in a portion, None for any number."""

    def __init__(self, mesh: Mesh | None, tasks: Mapping[str, Task]) -> None:
        self._table, self._mesh = put_on_first(build_table(tasks)), mesh

    def evaluation(self) -> TaskTable:
        """Returns the source of `evaluate`, the table."""
        return self._table

    def portions(self, portions: Portions) -> Iterator[TaskTable]:
        """Yields the sources of `train`, the table on all devices."""
        return repeat(replicate(self._mesh, self._table))


class StreamedFeed:
    """The rows that training reads, only those of the sampled lists."""

    def __init__(
        self, model: ModelConfig, config: MetaTrainConfig, key: Array, mesh: Mesh | None, tasks: Mapping[str, Task]
    ) -> None:
        self._model, self._config = model, config
        self._table, self._cpu = HostTable(tasks), _drawing_device()
        self._key = jax.device_put(key, self._cpu)
        spans = self._table.start, self._table.size, np.int32(len(tasks))
        self._spans = TaskSpans(*jax.device_put(spans, self._cpu))
        self._lists = lists_shape(model.members, config)
        self.most = max(1, PORTION_BYTES // bytes_per_step(model, config, next(iter(tasks.values())).n_columns))
        self._sharding = None if mesh is None else NamedSharding(mesh, lists_spec(config.own_lists))
        self._threads = ThreadPoolExecutor(devices.cores())
        self._evaluation: GatheredRows | None = None

    def evaluation(self) -> GatheredRows:
        """Returns the source of `evaluate`, the rows of its lists, which are the same at every call."""
        if self._evaluation is None:
            rows = _evaluation_rows(self._spans, self._key, self._model, self._config)
            self._evaluation = put_on_first(self._gather(rows))
        return self._evaluation

    def portions(self, portions: Portions) -> Iterator[GatheredRows]:
        """Yields the sources of `train`; each device gets the rows of its lists.

        Take the next one while the devices compute.
        """
        for step, count in portions:
            shape = count, *self._lists
            yield _put_parts(partial(self._part, step, shape), shape, self._sharding)

    def _part(self, step: int, shape: tuple[int, ...], part: tuple[slice, ...]) -> GatheredRows:
        """Returns the rows of a part of the lists of steps from ``step`` on, whose dimensions are ``shape``."""
        bounds = [dimension.indices(n)[:2] for dimension, n in zip(part[1:], shape[1:], strict=True)]
        first, sizes = [np.int32(low) for low, _ in bounds], tuple(high - low for low, high in bounds)
        steps, steps_per_read = np.arange(step, step + shape[0], dtype=np.int32), max(1, LISTS_AT_ONCE // prod(sizes))

        def read(first_step: int) -> GatheredRows:
            chunk = steps[first_step : first_step + steps_per_read]
            return self._gather(_step_rows(self._spans, self._key, chunk, first, sizes, self._model, self._config))

        pieces = self._threads.map(read, range(0, len(steps), steps_per_read))
        return jax.tree.map(lambda *arrays: np.concatenate(arrays), *pieces)

    def _gather(self, rows: ListRows) -> GatheredRows:
        return self._table.gather(jax.tree.map(np.asarray, rows))


Feed = ResidentFeed | StreamedFeed


def bytes_per_step(model: ModelConfig, config: MetaTrainConfig, n_columns: int) -> int:
    """Returns the bytes of the rows of a training step.

    Example:
      >>> bytes_per_step(ModelConfig(), MetaTrainConfig(lists_per_step=100), 16)
      8760000
    """
    return prod(lists_shape(model.members, config)) * (config.n_support + config.n_query) * (4 * n_columns + 9)


def _drawing_device() -> jax.Device:
    """Returns the CPU if JAX has one, else a device: row numbers are needed on the host, and devices are busy."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return devices.local()[0]


@partial(jax.jit, static_argnames=("sizes", "model", "config"))
def _step_rows(
    spans: TaskSpans,
    key: Array,
    steps: Array,
    first: list[Array],
    sizes: tuple[int, ...],
    model: ModelConfig,
    config: MetaTrainConfig,
) -> ListRows:
    """Returns the rows of ``sizes`` lists from ``first`` on, along each dimension of a step."""
    bits = draw_steps_bits(key, steps, model.members, config)
    part = lax.dynamic_slice(bits, [0, *first, 0], (len(steps), *sizes, bits.shape[-1]))
    return sample_lists(spans, part, n_support=config.n_support)


@partial(jax.jit, static_argnames=("model", "config"))
def _evaluation_rows(spans: TaskSpans, key: Array, model: ModelConfig, config: MetaTrainConfig) -> ListRows:
    return sample_lists(spans, evaluation_bits(model, config, key), n_support=config.n_support)


def _put_parts(
    part: Callable[[tuple[slice, ...]], GatheredRows], shape: tuple[int, ...], sharding: NamedSharding | None
) -> GatheredRows:
    """Returns an array of parts on the devices of this process, sharded over all devices."""
    if sharding is None:
        return put_on_first(part((slice(None),) * len(shape)))
    index_of_device = {
        device: index for device, index in sharding.addressable_devices_indices_map(shape).items() if index
    }
    read = {str(index): part(index) for index in {str(index): index for index in index_of_device.values()}.values()}
    shards = [jax.device_put(read[str(index)], device) for device, index in index_of_device.items()]

    def whole(*parts: Array) -> Array:
        return jax.make_array_from_single_device_arrays((*shape, *parts[0].shape[len(shape) :]), sharding, list(parts))

    return jax.tree.map(whole, *shards)
