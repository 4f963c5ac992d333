"""A later call compiles nothing, wherever its arrays lie; and meta-training compiles each of its programs once."""

import json

import pytest

from tests.processes import run_python

PROGRAM = """
import json
import jax
import numpy as np

jax.config.update("jax_num_cpu_devices", 2)
from dre_jax import DRE, MetaTrainConfig, ModelConfig, Suggester
from dre_jax.data import bundled
from dre_jax.methods.dre import FineTuneConfig
from dre_jax.methods.dre.trainer import meta_train
from dre_jax.runtime import devices
from dre_jax.search import ExecutionConfig, run_tasks

programs, counts = [], {}


def note(event, duration_secs, fun_name="", **_):
    if event.endswith("backend_compile_duration"):
        programs.append(fun_name)


jax.monitoring.register_event_duration_secs_listener(note)


def count(name, call):
    programs.clear()
    result = call()
    counts[name] = list(programs)
    return result


space, key, (first, second) = bundled.load("svm"), jax.random.key(0), jax.devices()
model = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
config = MetaTrainConfig(steps=6, evaluate_every=2, patience=9, n_query=5, n_support=2, evaluation_lists=2)
for used in (1, 2):
    devices.use(used)
    for name, one_key in (("first", key), ("second", jax.device_put(key, second)), ("third", key)):
        trained = count(f"train {used} {name}", lambda: meta_train(space, model, config, key=one_key)).params

host = jax.tree.map(np.asarray, trained)
params = {"first": host, "trained": trained}
params |= {"second": jax.device_put(host, second), "third": jax.device_put(host, first)}
method, tasks = DRE(model=model, fine_tuning=FineTuneConfig(epochs=2)), dict(list(space.test.items())[:2])
for used, side_by_side in ((1, False), (2, True)):
    execution = ExecutionConfig(devices=used, side_by_side=side_by_side)
    for name, one in params.items():
        one_key = jax.device_put(key, second) if name == "second" else key
        call = lambda: list(run_tasks(method, one, tasks, space.designs, n_trials=2, key=one_key, config=execution))
        count(f"run {used} {side_by_side} {name}", call)

task = next(iter(space.test.values()))
for name, one in params.items():
    suggester = Suggester(method, one, key=jax.device_put(key, second) if name == "second" else key)
    for n in (7, 8):
        observed = task.X[:n], task.y[:n]
        count(f"row {n} {name}", lambda: suggester.observe_and_suggest(*observed, task.X[n:40]))
        count(f"point {n} {name}", lambda: suggester.observe_and_suggest(*observed))
print(json.dumps(counts))
"""


@pytest.mark.multiprocess
@pytest.mark.slow
def test_later_calls_compile_nothing():
    """Neither with more trials, nor with arrays on another device or on the host; training compiles its loop once."""
    # Without the cache of the tests, from which nothing is compiled.
    process = run_python(PROGRAM, DRE_JAX_NATIVE="0", JAX_ENABLE_COMPILATION_CACHE="0")
    programs = json.loads(process.stdout)
    later = {name for name in programs if not name.endswith("first") or name.startswith(("row 8", "point 8"))}
    assert {name: names for name, names in programs.items() if name in later and names} == {}
    assert [programs[f"train {n} first"].count("jit(train)") for n in (1, 2)] == [1, 1]
    for name in ("run 1 False first", "run 2 True first", "row 7 first", "point 7 first"):
        assert len(set(programs[name])) == len(programs[name]) > 0
