"""Meta-training over a mesh of 1, 2 and 4 devices: the same losses and parameters, and nothing exchanged in vain."""

import json
import os
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import bundled
from dre_jax.methods.dre.model.ensemble import Support, scores
from dre_jax.methods.dre.training_checkpoint import TrainingCheckpoint, training_configs
from tests.processes import run_python

pytestmark = pytest.mark.multiprocess
compiled = jax.jit(scores, static_argnums=0)

# One process of four devices, of which it uses some: so many until it is interrupted, then so many; to four of them
# rows are streamed. All trainings have one configuration, and programs are kept: compiling takes the time.
PAIRS = {"own": ((1, 1), (1, 4)), "shared": ((1, 1), (2, 4))}
PROGRAM = """
import json, sys
import jax
jax.config.update("jax_num_cpu_devices", 4)
from jax import export
from dre_jax import MetaTrainConfig, ModelConfig, native
from dre_jax.runtime import devices
from dre_jax.data import bundled
from dre_jax.data.tasks import build_table
from dre_jax.methods.dre.mesh import mesh_for, replicate, spread
from dre_jax.methods.dre.steps import start, train
from dre_jax.methods.dre.trainer import meta_train

space, key = bundled.load("svm"), jax.random.key(0)
config = MetaTrainConfig(steps=20, evaluate_every=10, evaluation_lists=4, lists_per_step=4)

def interrupt(progress):
    if progress.step == 20:  # the last checkpoint is that of step 10
        raise KeyboardInterrupt

context, model = sys.argv[2], ModelConfig(context=sys.argv[2], members=2, hidden=(8,), phi=(8,), rho=(4,))
for first, then in json.loads(sys.argv[3]):
    folder = f"{sys.argv[1]}/{first}-{then}"
    devices.use(first)
    try:
        meta_train(space, model, config, key=key, folder=folder, report=interrupt)
    except KeyboardInterrupt:
        devices.use(then)
        result = meta_train(space, model, config, key=key, folder=folder, stream=then == 4)
    assert result.resumed_from == 10
    print(json.dumps(result.history))
meshes = []
for count in (1, 2, 4):
    devices.use(count)
    mesh = mesh_for(model, 4)
    meshes.append(dict(mesh.shape) if mesh else {})
table = build_table(space.train)
state = spread(model, mesh, start(model, config, table.n_columns, key))
arguments = model, config, replicate(mesh, table), state, key, 10, mesh
program = train.lower(*arguments).compile().as_text()
collectives = ("all-reduce", "all-gather", "all-to-all", "collective-permute")
checks = [export.DisabledSafetyCheck.custom_call(name) for name in native.CALLS]
exported = export.export(train, platforms=["tpu", "cuda", "cpu"], disabled_checks=checks)(*arguments)
exchanged = [program.count(f" {name}(") for name in collectives]
print(json.dumps({"meshes": meshes, "exchanged": exchanged, "platforms": exported.platforms}))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of the trainings with such deep sets, and what they printed."""

    @cache
    def train(context):
        folder = tmp_path_factory.mktemp(context)
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"  # there is little to run
        process = run_python(PROGRAM, folder, context, json.dumps(PAIRS[context]), XLA_FLAGS=flags)
        return folder, [json.loads(line) for line in process.stdout.splitlines()]

    return train


@pytest.mark.parametrize("context", ["own", pytest.param("shared", marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_the_number_of_devices_does_not_matter(trained, context):
    folder, (one, *others, _) = trained(context)
    assert [step for step, *_ in one] == [0, 10, 20]
    reference = centred_scores(folder / "1-1")
    for (first, then), history in zip(PAIRS[context][1:], others, strict=True):
        np.testing.assert_allclose(history, one, rtol=1e-4)
        np.testing.assert_allclose(centred_scores(folder / f"{first}-{then}"), reference, atol=2e-4)
    assert np.ptp(reference) > 0.1


def centred_scores(folder):
    """Returns the scores of a task by a checkpoint, loaded by this process, which has devices of its own.

    Up to a constant: the loss does not see one, so the gradient of what adds one is rounding alone, and Adam makes
    whole steps of that.
    """
    checkpoint = TrainingCheckpoint(folder)
    step = checkpoint.load()
    model, _ = training_configs(checkpoint.metadata())
    x = jnp.asarray(next(iter(bundled.load("svm").train.values())).X[:40])
    support = Support(x[:8], jnp.linspace(0.0, 1.0, 8), jnp.ones(8, bool))
    result = np.asarray(compiled(model, step.params, support, x))
    return result - result.mean(axis=1, keepdims=True)


TWO, FOUR = {"members": 2, "lists": 1}, {"members": 2, "lists": 2}


@pytest.mark.parametrize(
    ("context", "meshes", "times"),
    [
        ("own", [{}, TWO, FOUR], 2),
        pytest.param("shared", [{}, *({"members": 1, "lists": n} for n in (2, 4))], 1, marks=pytest.mark.thorough),
    ],
)
def test_meshes_collectives_and_platforms(trained, context, meshes, times):
    *_, last = trained(context)[1]
    # Only gradients over lists: once a step, in one go; and for members with deep sets of their own the closing mean
    # of the losses over members.
    assert last == {"meshes": meshes, "exchanged": [times, 0, 0, 0], "platforms": ["tpu", "cuda", "cpu"]}
