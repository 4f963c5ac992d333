"""Times of the library, through what its commands call."""

import time
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks.suite.floors import time_calls
from benchmarks.suite.rows import Timing, timing
from dre_jax import DRE, ModelConfig, SearchSpace, Suggester, Task, meta_train
from dre_jax.methods.dre.backends import take_steps
from dre_jax.methods.dre.backends.reference.request import SampledLists
from dre_jax.methods.dre.fine_tuning import draw_epochs, fine_tune
from dre_jax.methods.dre.many_spaces import SpaceTraining, meta_train_side_by_side
from dre_jax.methods.dre.model.ensemble import EnsembleParams, init
from dre_jax.methods.dre.model.model_config import preset
from dre_jax.methods.dre.steps import portion
from dre_jax.methods.dre.training_config import PAPER_FINE_TUNING, PAPER_META_TRAINING
from dre_jax.optim.adam import step_sizes, zero_moments
from dre_jax.search import ExecutionConfig, Method, SpaceRuns, run_spaces, run_tasks
from dre_jax.search.acquisition import AcquisitionConfig


def default_model(members: int = 10) -> ModelConfig:
    return replace(preset("default"), members=members)


@lru_cache(maxsize=4)
def random_tasks(n_tasks: int, n_rows: int, n_columns: int) -> dict[str, Task]:
    """Tasks of random rows: speed does not depend on the values."""
    rng = np.random.default_rng(0)
    return {
        f"task-{i}": Task(f"task-{i}", rng.random((n_rows, n_columns), np.float32), rng.random(n_rows))
        for i in range(n_tasks)
    }


def method(model: ModelConfig, epochs: int) -> DRE:
    """The paper's fine-tuning and acquisition, which the peers have too."""
    fine_tuning = replace(PAPER_FINE_TUNING, epochs=epochs)
    return DRE(model=model, fine_tuning=fine_tuning, acquisition=AcquisitionConfig(kind="ei"))


def parameters(model: ModelConfig, columns: int) -> EnsembleParams:
    return init(model, columns, jax.random.key(0))


def meta_step(
    model: ModelConfig,
    *,
    lists: int,
    columns: int,
    repeats: int,
    tasks: int = 30,
    rows: int = 300,
    own_lists: bool = True,
    spaces: int = 1,
) -> Timing:
    """Measures a step of meta-training of search spaces side by side, portion by portion as the trainer reports."""
    config = replace(PAPER_META_TRAINING, own_lists=own_lists, lists_per_step=lists)
    steps = portion(config) * (repeats + 1)
    config = replace(config, steps=steps, evaluate_every=steps, evaluation_lists=1)
    space = SearchSpace("random", train=random_tasks(tasks, rows, columns))
    reports = [(0, time.perf_counter())]

    def report(at: Any) -> None:
        reports.append((at.step, time.perf_counter()))

    if spaces == 1:
        meta_train(space, model, config, key=jax.random.key(0), report=report)
    else:
        trainings = [SpaceTraining(space)] * spaces
        meta_train_side_by_side(trainings, model, config, key=jax.random.key(0), report=report)
    each = [(end - begin) / (last - step) for (step, begin), (last, end) in pairwise(reports)]
    # The first portion stands behind the sorting of the table, a loss, and the compiling of both.
    return timing(each[1:], 1, each[0] * reports[1][0])


def trial(
    model: ModelConfig, *, history: int, candidates: int, columns: int, epochs: int, repeats: int, runs: int
) -> Timing:
    """Measures a trial of one run among several: runs that begin with so large a design, and end after one trial."""
    tasks, params = random_tasks(runs, history + candidates, columns), parameters(model, columns)
    designs = {name: {"test0": np.arange(history)} for name in tasks}
    options: dict[str, Any] = {"n_trials": 1, "key": jax.random.key(1), "stop_at_optimum": False}
    call = partial(run_tasks, method(model, epochs), params, tasks, designs, **options)
    first, later = time_calls(lambda: list(call()), repeats)
    return timing(later, runs, first, f"{runs} runs at once")


def epoch(model: ModelConfig, *, runs: int, history: int, columns: int, epochs: int, repeats: int) -> Timing:
    """Measures an epoch of fine-tuning of runs side by side, from parameters that they share."""
    rng = np.random.default_rng(0)
    x = rng.random((runs, history, columns), np.float32)
    response = np.broadcast_to(np.linspace(1.0, 0.0, history, dtype=np.float32), (runs, history))
    level = np.broadcast_to(np.arange(history, dtype=np.int32), (runs, history))
    tune = partial(fine_tune, model, replace(PAPER_FINE_TUNING, epochs=epochs))
    call = jax.jit(jax.vmap(tune, in_axes=(None, 0, 0, 0, 0, 0)))
    keys = jax.random.split(jax.random.key(1), runs)
    arrays = jax.device_put((x, response, level, np.ones((runs, history), bool), keys))
    first, later = time_calls(partial(call, parameters(model, columns), *arrays), repeats)
    return timing(later, epochs, first, f"{runs} runs side by side")


def launch(model: ModelConfig, *, runs: int, history: int, columns: int, epochs: int, repeats: int) -> Timing:
    """Measures an epoch of the training steps alone, as the difference of calls with ``epochs`` and twice as many.

    Lists are drawn before, and the cost of a call, such as the layout of parameters, is in both calls.
    """
    rng, fine_tuning = np.random.default_rng(0), replace(PAPER_FINE_TUNING, epochs=2 * epochs)
    x = jax.device_put(rng.random((runs, history, columns), np.float32))
    response = jnp.linspace(1.0, 0.0, history)
    level, where = jnp.arange(history, dtype=jnp.int32), jnp.ones(history, bool)
    draw = jax.jit(jax.vmap(partial(draw_epochs, fine_tuning), in_axes=(None, None, None, 0)))
    lists = draw(response, level, where, jax.random.split(jax.random.key(1), runs))
    params = parameters(model, columns)
    start, sizes = (params, zero_moments(params)), step_sizes(fine_tuning.learning_rates(), jnp.arange(2 * epochs))
    loss = fine_tuning.loss.name

    def tune(x: Array, lists: SampledLists, n: int) -> EnsembleParams:
        of_steps = jax.tree.map(lambda a: a[:n, None, None], lists), jax.tree.map(lambda a: a[:n], sizes)
        return take_steps(model, loss, x, response, start, *of_steps, params_only=True)[0][0]

    times = list[list[float]]()
    first = 0.0
    for n in (epochs, 2 * epochs):
        call = jax.jit(jax.vmap(partial(tune, n=n)))
        compiled, later = time_calls(partial(call, x, lists), repeats)
        first += compiled
        times.append(sorted(later))
    differences = [long - short for short, long in zip(*times, strict=True)]
    return timing(differences, epochs, first, f"{runs} runs side by side; lists drawn before")


def one_trial(
    method: Method, params: Any, *, tasks: int, designs: int, history: int, candidates: int, columns: int, repeats: int
) -> Timing:
    """Measures `run_tasks` of tasks x designs runs that end after one trial; side by side whatever the device."""
    data = random_tasks(tasks, history + candidates, columns)
    starts = {f"test{i}": np.arange(history) + i for i in range(designs)}
    config = ExecutionConfig(side_by_side=True)
    options: dict[str, Any] = {"n_trials": 1, "key": jax.random.key(1), "config": config, "stop_at_optimum": False}
    call = partial(run_tasks, method, params, data, dict.fromkeys(data, starts), **options)
    first, later = time_calls(lambda: list(call()), repeats)
    return timing(later, 1, first, f"{tasks * designs} runs")


class Protocol(NamedTuple):
    """The cost of HPO-B's protocol."""

    seconds: float
    """With compiling."""
    compile_s: float
    programs: int


def runs_of_spaces(
    model: ModelConfig, spaces: dict[str, dict[str, Task]], *, design: int, designs: int, trials: int, epochs: int
) -> Protocol:
    """Measures all runs of several search spaces by `run_spaces`, side by side whatever the device."""
    compile_times = list[float]()

    def add_compile_time(event: str, duration_secs: float, **_: Any) -> None:
        if event.endswith("backend_compile_duration"):
            compile_times.append(duration_secs)

    seeds, work = {f"test{i}": np.arange(design) + i for i in range(designs)}, {}
    for name, tasks in spaces.items():
        params = parameters(model, next(iter(tasks.values())).n_columns)
        work[name] = SpaceRuns(params, tasks, dict.fromkeys(tasks, seeds), jax.random.key(1))
    jax.block_until_ready([runs.params for runs in work.values()])
    jax.monitoring.register_event_duration_secs_listener(add_compile_time)
    begin, config = time.perf_counter(), ExecutionConfig(side_by_side=True)
    for _ in run_spaces(method(model, epochs), work, n_trials=trials, config=config, stop_at_optimum=False):
        pass
    return Protocol(time.perf_counter() - begin, sum(compile_times), len(compile_times))


def suggestion(model: ModelConfig, *, history: int, candidates: int, columns: int, epochs: int, repeats: int) -> Timing:
    """Measures `Suggester.observe_and_suggest`; what the first call takes longer is the time of compiling."""
    (task,) = random_tasks(1, history + candidates, columns).values()
    suggester = Suggester(method(model, epochs), parameters(model, columns), seed=0)
    data = task.X[:history], task.y[:history], task.X[history:]
    first, later = time_calls(lambda: suggester.observe_and_suggest(*data), repeats)
    return timing(later, 1, first)
