"""Vizier's Gaussian processes in a process of their own, since Vizier needs an older JAX than this library.

The process reads lines of JSON and answers each with a configuration. A line is of

    {"start": names of parameters to choices or null, "past": [[configurations, losses], ...] or null, "seed": s}
    {"trials": [[configuration, loss], ...]}, what was completed since the last line

The environment needs ``"google-vizier[jax]" jax==0.4.34 jaxlib==0.4.34 "numpy<2.1"``.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from typing import Any


def designer(start: dict[str, Any]) -> Any:
    """Returns Vizier's default without a past; with one its Gaussian process stacked on those of past studies."""
    import jax
    from vizier import algorithms, pyvizier
    from vizier._src.algorithms.designers import gp_bandit, gp_ucb_pe
    from vizier.pyvizier.converters import padding

    problem = pyvizier.ProblemStatement()
    for name, choices in start["start"].items():
        if choices is None:
            problem.search_space.root.add_float_param(name, 0.0, 1.0)
        else:
            problem.search_space.root.add_categorical_param(name, choices)
    goal = pyvizier.ObjectiveMetricGoal.MINIMIZE
    problem.metric_information.append(pyvizier.MetricInformation(name="loss", goal=goal))
    jax.config.update("jax_enable_x64", True)  # as Vizier's service does
    rng = jax.random.PRNGKey(start["seed"])
    pad = padding.PaddingSchedule(num_trials=padding.PaddingType.MULTIPLES_OF_10)
    if start["past"] is None:
        return gp_ucb_pe.VizierGPUCBPEBandit(problem, rng=rng, padding_schedule=pad)
    stacked = gp_bandit.VizierGPBandit(problem, rng=rng, padding_schedule=pad)
    stacked.set_priors([algorithms.CompletedTrials(completed(zip(*study, strict=True))) for study in start["past"]])
    return stacked


def completed(trials: Any, numbers: Any = None) -> list[Any]:
    """Returns trials as Vizier has them, of configurations and losses."""
    from vizier import pyvizier

    result = []
    for (configuration, loss), number in zip(trials, numbers or itertools.count(1), strict=False):
        trial = pyvizier.Trial(id=number, parameters=configuration)
        trial.complete(pyvizier.Measurement({"loss": loss}))
        result.append(trial)
    return result


def main() -> None:
    """Answers every line of standard input."""
    from vizier import algorithms

    warnings.simplefilter("ignore")
    for line in sys.stdin:
        message = json.loads(line)
        if "start" in message:
            current, numbers = designer(message), itertools.count(1)
        else:
            done = algorithms.CompletedTrials(completed(message["trials"], numbers))
            current.update(done, algorithms.ActiveTrials([]))
            suggestion = current.suggest(1)[0].parameters
            print(json.dumps({name: suggestion.get_value(name) for name in suggestion}), flush=True)


if __name__ == "__main__":
    main()
