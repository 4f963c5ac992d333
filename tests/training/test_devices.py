"""Members shared out among CPU devices train as they do on one."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, sys
import jax
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
import numpy as np
from dre_jax import MetaTrainConfig, ModelConfig
from dre_jax.data import bundled
from dre_jax.training.meta_train import member_devices
from dre_jax.training.trainer import meta_train

sizes = {"hidden": (8, 8), "phi": (8, 8), "rho": (8, 4)}
model = ModelConfig(members=4, context=sys.argv[2], **sizes)
config = MetaTrainConfig(steps=20, evaluate_every=10, evaluation_lists=4)
found = meta_train(bundled.load("svm"), model, config, key=jax.random.key(0), folder=sys.argv[3])
again = meta_train(bundled.load("svm"), model, config, key=jax.random.key(0), folder=sys.argv[3])
assert again.resumed_from == 20
same = [np.array_equal(a, b) for a, b in zip(jax.tree.leaves(found.params), jax.tree.leaves(again.params))]
leaves = [np.asarray(a).ravel() for a in jax.tree.leaves(found.params)]
print(json.dumps({
    "devices": len(member_devices(model)),
    "params": np.concatenate(leaves).tolist(),
    "history": found.history,
    "same": all(same),
}))
"""


def trained(devices, context, folder):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(devices), context, str(folder)],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.multiprocess
@pytest.mark.parametrize(("context", "used"), [("own", 4), ("shared", 0)])
def test_four_devices_train_as_one(tmp_path, context, used):
    one, four = (trained(n, context, tmp_path / str(n)) for n in (1, 4))
    assert (one["devices"], four["devices"]) == (0, used)
    assert one["same"]
    assert four["same"]
    np.testing.assert_allclose(four["history"], one["history"], rtol=1e-4)
    # Where a gradient is rounding alone, as a last bias's under ListMLE, Adam makes whole steps of it.
    far = np.abs(np.subtract(four["params"], one["params"])) > 1e-3
    assert far.mean() < 0.005


@pytest.mark.multiprocess
def test_three_devices_share_four_members_as_two(tmp_path):
    assert trained(3, "own", tmp_path)["devices"] == 2
