"""The example that reads Syne Tune's blackbox repository, as its blackbox_tabular.py and pd1_import.py write it."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dre_jax.tuning import Categorical, Float, Int, Space

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
from syne_tune import read_benchmark


def domain(kind, sampler=None, **kwargs):
    drawn = {} if sampler is None else {"sampler_cls": sampler, "sampler_kwargs": {}}
    return {"domain_cls": kind, "domain_kwargs": kwargs, **drawn}


DOMAINS = {
    "hp_lr": domain("Float", "LogUniform", lower=1e-4, upper=1e-1),
    "hp_layers": domain("Integer", "Uniform", lower=1, upper=5),
    "hp_units": domain("FiniteRange", lower=16, upper=64, size=3, log_scale=True, cast_int=True),
    "hp_schedule": domain("Categorical", categories=["cosine", "const"]),
    "repl": 10,
}
HYPERPARAMETERS = pd.DataFrame(
    {
        "hp_lr": [1e-4, 1e-2, 1e-1, 1e-3],
        "hp_layers": [1, 2, 5, 3],
        "hp_units": [16, 32, 64, 16],
        "hp_schedule": ["cosine", "const", "cosine", "const"],
    }
)
OBJECTIVES = ["metric_loss", "metric_elapsed_time"]
TASKS = ["wine", "digits"]


@pytest.fixture
def curves():
    """(tasks, configurations, seeds, fidelities, objectives), one of them cut short, one never begun."""
    result = np.random.default_rng(0).uniform(size=(2, 4, 2, 3, 2)).astype(np.float32)
    result[0, 1, 0, 2:] = np.nan
    result[0, 3, 1] = np.nan
    return result


@pytest.fixture
def repository(tmp_path):
    metadata = {"objectives_names": OBJECTIVES, "task_names": TASKS, "metric_default": "metric_loss"}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    (tmp_path / "configspace.json").write_text(json.dumps(DOMAINS))
    return tmp_path


@pytest.fixture
def shared(repository, curves):
    HYPERPARAMETERS.to_parquet(repository / "hyperparameters.parquet", index=False, compression="gzip")
    np.save(repository / "objectives_evaluations.npy", curves)
    np.save(repository / "fidelities_values.npy", np.arange(1, 4))
    return repository


@pytest.fixture
def expected(curves):
    """Minus the loss at the end of each curve, by hand."""
    ends = curves[:, :, :, 2, 0].astype(float)
    ends[0, 1, 0] = curves[0, 1, 0, 1, 0]
    means = ends.mean(axis=2)
    means[0, 3] = ends[0, 3, 0]
    return -means


def test_syne_tunes_tables_of_shared_configurations(shared, expected):
    past = read_benchmark(shared, direction="minimize")
    units = Categorical([16, 32, 64], ordered=True)
    parameters = {"hp_lr": Float(1e-4, 1e-1, log=True), "hp_layers": Int(1, 5), "hp_units": units}
    assert past.space == Space({**parameters, "hp_schedule": Categorical(["cosine", "const"])})
    assert (list(past.tasks), past.exclusions) == (TASKS, ())
    rows = [past.space.encode(row) for row in HYPERPARAMETERS.to_dict("records")]
    for task, values in zip(past.tasks.values(), expected, strict=True):
        np.testing.assert_allclose(task.X, rows, rtol=1e-6)
        np.testing.assert_allclose(task.y, values, rtol=1e-6)
    one = read_benchmark(shared, direction="maximize", objective="metric_elapsed_time")
    assert len(one) == 2


def test_syne_tunes_tables_of_each_task(repository, curves, expected):
    for task, table in zip(TASKS, curves, strict=True):
        HYPERPARAMETERS.to_parquet(repository / f"{task}-hyperparameters.parquet", index=False, compression="gzip")
        np.save(repository / f"{task}-objectives_evaluations.npy", table)
    past = read_benchmark(repository, direction="minimize")
    for task, values in zip(past.tasks.values(), expected, strict=True):
        np.testing.assert_allclose(task.y, values, rtol=1e-6)
