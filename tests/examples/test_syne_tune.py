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
NUMBERS = {"hp_lr": [1e-4, 1e-2, 1e-1, 1e-3], "hp_layers": [1, 2, 5, 3], "hp_units": [16, 32, 64, 16]}
HYPERPARAMETERS = pd.DataFrame({**NUMBERS, "hp_schedule": ["cosine", "const", "cosine", "const"]})
OBJECTIVES, TASKS = ["metric_loss", "metric_elapsed_time"], ["wine", "digits"]
CURVES = np.random.default_rng(0).uniform(size=(2, 4, 2, 3, 2)).astype(np.float32)
"""(tasks, configurations, seeds, fidelities, objectives), one of them cut short, one never begun."""
CURVES[0, 1, 0, 2:] = CURVES[0, 3, 1] = np.nan


def losses_at_the_end():
    ends = CURVES[:, :, :, 2, 0].astype(float)
    ends[0, 1, 0] = CURVES[0, 1, 0, 1, 0]
    return np.nanmean(ends, axis=2)


@pytest.mark.parametrize("is_shared", [True, False])
def test_syne_tunes_tables_are_read(is_shared, tmp_path):
    """One table of configurations for all tasks, or one for each."""
    metadata = {"objectives_names": OBJECTIVES, "task_names": TASKS, "metric_default": "metric_loss"}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    (tmp_path / "configspace.json").write_text(json.dumps(DOMAINS))
    for prefix, curves in [("", CURVES)] if is_shared else [(f"{t}-", c) for t, c in zip(TASKS, CURVES, strict=True)]:
        HYPERPARAMETERS.to_parquet(tmp_path / f"{prefix}hyperparameters.parquet", index=False, compression="gzip")
        np.save(tmp_path / f"{prefix}objectives_evaluations.npy", curves)
    if is_shared:
        np.save(tmp_path / "fidelities_values.npy", np.arange(1, 4))
    past = read_benchmark(tmp_path, direction="minimize")
    units = Categorical([16, 32, 64], ordered=True)
    parameters = {"hp_lr": Float(1e-4, 1e-1, log=True), "hp_layers": Int(1, 5), "hp_units": units}
    assert past.space == Space({**parameters, "hp_schedule": Categorical(["cosine", "const"])})
    assert (list(past.tasks), past.exclusions) == (TASKS, ())
    rows = [past.space.encode(row) for row in HYPERPARAMETERS.to_dict("records")]
    for task, values in zip(past.tasks.values(), losses_at_the_end(), strict=True):
        np.testing.assert_allclose(task.X, rows, rtol=1e-6)
        np.testing.assert_allclose(task.y, -values, rtol=1e-6)
    assert len(read_benchmark(tmp_path, direction="maximize", objective="metric_elapsed_time")) == 2
