"""Meta-training on five sinusoids: how many trials it saves on a sixth, against no training and random search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from dre_jax import DRE, FineTuneConfig, MetaTrainConfig, RandomSearch, meta_train, run_tasks
from dre_jax.data import SearchSpace
from dre_jax.methods.dre.model_config import preset
from dre_jax.methods.dre.training_config import PAPER_LOSS
from dre_jax.search.acquisition import AcquisitionConfig
from papers.sinusoid import REACHED

# Appendix B: ten scorers of two layers of 10, a deep set of four layers of 10. It sees responses as they are.
MODEL = replace(preset("paper"), hidden=(10, 10), phi=(10, 10), rho=(10, 10), response_scale="table")
# Appendix B: 1000 epochs, batch size 10, Adam at 0.001. We take an epoch for ten steps, a batch for ten lists of ten,
# and a support as small as the initial design, which the deep set is given later.
TRAINING = MetaTrainConfig(
    steps=10_000, lists_per_step=10, n_support=3, n_query=10, evaluate_every=10_000, loss=PAPER_LOSS
)
# Appendix B: 500 iterations. The learning rate is not stated; 0.02 is the thesis' for random weights.
FROM_RANDOM = FineTuneConfig(epochs=500, learning_rate=0.02, loss=PAPER_LOSS)
GENTLE = FineTuneConfig(epochs=100, learning_rate=1e-4, loss=PAPER_LOSS)
EI = AcquisitionConfig(kind="ei")
META = DRE(model=MODEL, fine_tuning=FineTuneConfig(epochs=0), acquisition=EI)
"""From meta-trained weights, as in the paper's example."""

Traces = dict[str, dict[str, np.ndarray]]
"""Task -> method -> f64[seeds, T + 1] incumbents on the task's [0, 1] scale."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    seeds: int = 20
    trials: int = 60
    training: MetaTrainConfig = TRAINING
    from_random: FineTuneConfig = FROM_RANDOM


def untrained(sizes: Sizes) -> DRE:
    """DRE from random weights at every trial."""
    return replace(META, fine_tuning=sizes.from_random, transfer=False)


def train(space: SearchSpace, sizes: Sizes, seed: int) -> Any:
    return meta_train(space, MODEL, sizes.training, key=jax.random.key(seed)).params


def compare(space: SearchSpace, sizes: Sizes, report: Callable[[str], None]) -> Traces:
    """Every method from every seed's design; a seed has its own meta-training too."""
    traces: Traces = {name: {} for name in space.test}
    everyone = [str(seed) for seed in range(sizes.seeds)]

    def optimise(name: str, method: Any, params: Any, seeds: list[str]) -> None:
        designs = {dataset: {seed: rows[seed] for seed in seeds} for dataset, rows in space.designs.items()}
        key = jax.random.key(0)  # a run folds its seed's name in
        for dataset, seed, trace in run_tasks(method, params, space.test, designs, n_trials=sizes.trials, key=key):
            table = traces[dataset].setdefault(name, np.full((sizes.seeds, sizes.trials + 1), np.nan))
            table[int(seed)] = trace

    for name, method in (("untrained", untrained(sizes)), ("random search", RandomSearch())):
        optimise(name, method, None, everyone)
        report(f"{name}: {sizes.seeds} seeds done")
    for seed in everyone:
        params = train(space, sizes, int(seed))
        optimise("meta-trained", META, params, [seed])
        optimise("meta-trained, fine-tuned", replace(META, fine_tuning=GENTLE), params, [seed])
        report(f"meta-trained: seed {seed} done")
    return traces


def trials_to_reach(incumbents: np.ndarray) -> np.ndarray:
    """Trials after the design until the optimum is within 1 % of the range; f64[seeds, T + 1] -> f64[seeds].

    0 where the design itself was that good, NaN where it never happened.
    """
    there = incumbents >= REACHED
    return np.where(there.any(axis=1), there.argmax(axis=1), np.nan)
