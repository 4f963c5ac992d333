"""Optuna's suites of cases for samplers, on the module as OptunaHub loads it."""

import importlib.util
from functools import partial
from pathlib import Path

import optuna
import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

PACKAGE = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def module():
    spec = importlib.util.spec_from_file_location("optunahub_samplers_dre", PACKAGE / "__init__.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


class TestDRESampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self, module):
        return partial(module.DRESampler, seed=0)


def test_a_study(module):
    study = optuna.create_study(sampler=module.DRESampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, n_trials=3)
    assert len(study.trials) == 3
