"""Tuning of your own model: search spaces, ask and tell, and surrogates that learn from past studies."""

from dre_jax.data.features import Choice, FeatureSpace, Linear, Log
from dre_jax.space.allowed import Allowed
from dre_jax.space.conditions import Interval
from dre_jax.space.configspace import from_configspace, to_configspace
from dre_jax.space.counts import Count
from dre_jax.space.formulas import Formula
from dre_jax.space.hpob import HPOB_SPACES, R_DEFAULTS, hpob_space
from dre_jax.space.json_format import read_space, write_space
from dre_jax.space.parameters import Bool, Categorical, Float, Int, Permutation
from dre_jax.space.rules import Forbidden, Less
from dre_jax.space.space import Params, Space
from dre_jax.space.sums import Sum
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.past.curves import PastCurves
from dre_jax.tuning.past.optuna_studies import from_studies
from dre_jax.tuning.past.tables import from_csv, from_frame
from dre_jax.tuning.past.tasks import Evaluated, Exclusion, Past, past_of
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.study.optimizers import Optimizers, StudyTrial
from dre_jax.tuning.surrogates.scaling import Scaling, Slope
from dre_jax.tuning.surrogates.sources import Sources, SourceStudy
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.trial import Trial

__all__ = [
    "HPOB_SPACES",
    "R_DEFAULTS",
    "Allowed",
    "Bool",
    "Categorical",
    "Choice",
    "Count",
    "EngineConfig",
    "Evaluated",
    "Exclusion",
    "FeatureSpace",
    "Fidelity",
    "Float",
    "Forbidden",
    "Formula",
    "Int",
    "Interval",
    "Less",
    "Linear",
    "Log",
    "Optimizer",
    "Optimizers",
    "Params",
    "Past",
    "PastCurves",
    "Permutation",
    "Scaling",
    "Slope",
    "SourceStudy",
    "Sources",
    "Space",
    "StudyTrial",
    "Sum",
    "Surrogate",
    "Trial",
    "from_configspace",
    "from_csv",
    "from_frame",
    "from_studies",
    "hpob_space",
    "past_of",
    "read_space",
    "to_configspace",
    "write_space",
]
