"""What configurations refuse, in one line that names the field and the value."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from dre_jax import AcquisitionConfig, ConfigError, FineTuneConfig, LossConfig, MetaTrainConfig, ModelConfig
from dre_jax.gp.fit import GPConfig
from dre_jax.gp.length_scale_prior import LengthScaleConfig
from dre_jax.gp.task_processes import TaskProcessConfig
from dre_jax.losses import position_weights
from dre_jax.methods.baselines.bohamiann import PriorConfig, SGHMCConfig
from dre_jax.methods.baselines.deep_ensemble import DeepEnsemble
from dre_jax.methods.baselines.dkgp import DeepKernelConfig
from dre_jax.methods.baselines.fsbo import KernelTraining
from dre_jax.methods.baselines.gcp import QuantileConfig
from dre_jax.methods.baselines.metis import Metis
from dre_jax.methods.hedged_prior.hedged_prior import HedgedPrior
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis
from dre_jax.methods.hedged_prior.priors import LearnedPriorConfig
from dre_jax.methods.hedged_prior.training import PriorTraining
from dre_jax.nn.mlp import MLPConfig
from dre_jax.optim.full_batch import FullBatchConfig, HistoryFitConfig
from dre_jax.suggest.candidates import CandidateConfig
from tests.error_messages import error_table, raises_line

COUNTS = dict.fromkeys(("n_support", "n_query", "evaluate_every", "evaluation_lists", "lists_per_step"), 0)
REFUSED = [
    (ModelConfig(), {"members": 0, "hidden": (), "phi": (8, 0), "rho": (-1,), "context": "each", "range_limit": 0.0}),
    (ModelConfig(), {"response_scale": "task", "initialiser": "zeros"}),
    (LossConfig(), {"name": "hinge", "weights": "log"}),
    (MetaTrainConfig(), COUNTS | {"steps": 0, "learning_rate": float("nan"), "patience": 0, "schedule": "step"}),
    (FineTuneConfig(), {"epochs": -1, "learning_rate": 0.0, "schedule": "step"}),
    (AcquisitionConfig(), {"kind": "ucb"}),
    (CandidateConfig(), {"even": 0, "steps": -1, "parents": 0, "refinements": -1, "pending_strategy": "truth"}),
    (CandidateConfig(), {"widths": ()}),
    (CandidateConfig(), {"even": 3, "widths": (0.0,)}),
    (GPConfig(), {"steps": -1, "learning_rate": 0.0, "kernel": "linear", "first_lengths": (0.1, 0.0)}),
    (MLPConfig(hidden=(3,)), {"hidden": (3, 0), "outputs": 0, "activation": "sine"}),
    (FullBatchConfig(steps=1, learning_rate=1.0), {"steps": -1, "learning_rate": 0.0, "schedule": "step"}),
    (HistoryFitConfig(steps=1, learning_rate=1.0), {"steps": -1, "learning_rate": 0.0}),
    (DeepKernelConfig(), {"layers": (), "rho": (3, 0), "kernel": "linear"}),
    (KernelTraining(), {"steps": 0, "batch": 0, "learning_rate": 0, "support": 0}),
    (QuantileConfig(), {"dropout": 1.0, "steps": 0, "batch": 0, "learning_rate": 0.0}),
    (PriorConfig(), {"weight_deviation": 0.0, "noise": 0.0, "noise_deviation": 0.0}),
    (SGHMCConfig(burn_in=1, samples=1, keep_every=1), {"burn_in": -1, "samples": 0, "keep_every": 0, "step_size": 0.0}),
    (SGHMCConfig(burn_in=1, samples=1, keep_every=1), {"friction": 1.5}),
    (DeepEnsemble(), {"members": 0, "least_variance": 0.0}),
    (Metis(), {"better": 1.0}),
    (LearnedPriorConfig(), {"trend": (), "layers": (4, 0), "members": 0, "degrees_of_freedom": 2.0}),
    (PriorTraining(), {"steps": 0, "tasks": 0, "min_rows": 1, "rows": 3, "learning_rate": 0.0, "decay": -1.0}),
    (PriorTraining(), {"hyperprior": -1.0, "folds": 0, "patience": 0, "transfer_strength": 0.0}),
    (PriorTraining(), {"transfer_probability": 1.0}),
    (LengthScaleConfig(), {"rows": 1, "tasks": 0, "steps": 0, "learning_rate": 0.0, "strength": 0.0}),
    (Hypothesis(weight=1.0), {"weight": 0.0, "noise_variance_factor": 0.0, "slope_variance_factor": -0.1}),
    (Hypothesis(weight=1.0), {"feature_variance_factor": float("nan"), "ard_variance_factor": -1.0}),
    (Hypothesis(weight=1.0), {"slope_mean": float("inf")}),
    (TaskProcessConfig(), {"lengthscales": (), "initial_lengthscales": (0.0,), "noise_var": 0.0, "steps": -1}),
    (TaskProcessConfig(), {"fitted_weight": 1.0}),
]
CASES = [(config, field, value) for config, wrong in REFUSED for field, value in wrong.items()]


@pytest.mark.parametrize(("config", "field", "value"), CASES)
def test_a_value_out_of_range(config, field, value):
    name = {"name": "loss", "kind": "acquisition"}.get(field, field)
    with raises_line(ConfigError, name, " but got ", repr(value)):
        replace(config, **{field: value})


test_inconsistent_configurations = error_table(
    ConfigError,
    (lambda: position_weights("log", jnp.ones(1), jnp.ones(1)), "must be one of inverse_log, "),
    (lambda: DeepEnsemble(network=MLPConfig(hidden=(6,))), "the network must have 2 outputs, but got outputs=1"),
    (lambda: HedgedPrior(hypotheses=()), "at least one hypothesis, but got none"),
)
