"""Functions in JAX: many searches in one program, and families of test functions."""

from dre_jax.functions.objective import Measurement
from dre_jax.functions.optimize import FunctionSearches, optimize_functions, unit_space

__all__ = ["FunctionSearches", "Measurement", "optimize_functions", "unit_space"]
