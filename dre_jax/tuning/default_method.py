"""The method without past tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dre_jax.methods import find
from dre_jax.search.method import Method

DEFAULT_METHOD = "gp"
"""The method without past tasks: of those without transfer the best rank at 50 trials (docs/results/methods.md)."""
DEFAULT_SETTINGS: Mapping[str, Any] = {
    "fitting.optimiser": "bfgs",
    "fitting.steps": 30,
    "fitting.first_log_noises": (-9.0, -1.0),
    "fitting.log_noise_prior": (-6.0, 4.0),
    "fitting.least_noise": 1e-8,
}
"""Settings of the default method: a better fit in a fifth of the time, and a noise floor for float64. The results on
tables in docs/results are without them."""


def default_method() -> Method:
    """Returns the method without past tasks."""
    return find(DEFAULT_METHOD).make(dict(DEFAULT_SETTINGS))
