"""Tuning a model of one's own: search spaces, ask and tell, and surrogates that learn from past studies."""

from dre_jax.tuning.engine import Engine, EngineConfig, Observation
from dre_jax.tuning.optimizer import Optimizer, Trial
from dre_jax.tuning.parameters import Bool, Categorical, Float, Int
from dre_jax.tuning.past import Evaluated, LeftOut, Past, past_of
from dre_jax.tuning.space import Params, Space
from dre_jax.tuning.space_json import read_space, write_space
from dre_jax.tuning.surrogate import Surrogate

__all__ = [
    "Bool",
    "Categorical",
    "Engine",
    "EngineConfig",
    "Evaluated",
    "Float",
    "Int",
    "LeftOut",
    "Observation",
    "Optimizer",
    "Params",
    "Past",
    "Space",
    "Surrogate",
    "Trial",
    "past_of",
    "read_space",
    "write_space",
]
