"""HPO-B's shape in small: 16 search spaces, 86 tasks, 430 runs, in one command."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, read_results, write_dataset

# HPO-B's search spaces: columns and number of test tasks.
SHAPE = {
    "4796": (3, 4), "5527": (8, 6), "5636": (6, 6), "5859": (6, 6), "5860": (2, 3), "5891": (8, 6), "5906": (16, 2),
    "5965": (10, 7), "5970": (2, 6), "5971": (16, 6), "6766": (2, 6), "6767": (18, 6), "6794": (10, 6), "7607": (9, 7),
    "7609": (9, 7), "5889": (6, 2),
}  # fmt: skip
SEEDS = tuple(f"test{number}" for number in range(5))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)

    def tasks(columns, names):
        return {n: Task(n, rng.random((24, columns), dtype=np.float32), rng.random(24)) for n in names}

    def space(name, columns, count):
        test = tasks(columns, [f"{name}-{number}" for number in range(count)])
        designs = {dataset: {seed: rng.permutation(24)[:5] for seed in SEEDS} for dataset in test}
        return SearchSpace(name, train=tasks(columns, ["a", "b"]), test=test, designs=designs)

    folder = tmp_path_factory.mktemp("hpob-data")
    write_dataset(folder, [space(name, *shape) for name, shape in SHAPE.items()])
    return folder


CHILD = """
import sys
from dre_jax.cli import main
main(["evaluate", "--data", sys.argv[1], "--method", "random", "--trials", "3", "--out", sys.argv[2], "--quiet"])
"""


@pytest.mark.thorough
@pytest.mark.multiprocess
@pytest.mark.slow
def test_all_of_it_killed_in_the_middle(data, tmp_path, content):
    whole, out = tmp_path / "whole.json", tmp_path / "out.json"
    # The three processes share what they compile.
    cache = {"DRE_JAX_CACHE": str(tmp_path / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    environment = {**os.environ, **cache, "JAX_NUM_CPU_DEVICES": "1"}

    def command(path):
        return [sys.executable, "-c", CHILD, str(data), str(path)]

    done = subprocess.run(command(whole), env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("random: 430 runs, mean regret ")
    results = read_results(whole)
    assert len(list(results.runs())) == 430
    assert list(results.traces) == list(SHAPE)
    with subprocess.Popen(command(out), env=environment) as process:
        while not out.exists() or out.stat().st_size < whole.stat().st_size / 3:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert 3 < len(read_results(out).traces) < 16
    again = subprocess.run(command(out), env=environment, capture_output=True, text=True, timeout=400)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split(" trials")[0] == done.stdout.split(" trials")[0]
    assert content(out) == content(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "out.json", "whole.json"]
