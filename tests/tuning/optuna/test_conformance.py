"""Optuna's own suites of cases for samplers."""

from functools import partial

import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase

from dre_jax.tuning.optuna import DRESampler


class Suites(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self, quiet_optuna):
        return partial(DRESampler, seed=0)


@pytest.mark.usefixtures("even_points")
class TestEvenPoints(Suites):
    """All but the method, of which every new space compiles one."""


@pytest.mark.thorough
class TestDRESampler(Suites):
    pass
