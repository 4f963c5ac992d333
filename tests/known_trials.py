"""Trials of an engine, as a study has them."""

from dre_jax import Trial


def complete_trial(params, value, **fields):
    return Trial(0, params, "complete", value, **fields)


def failed_trials(configurations):
    return [Trial(0, params, "failed") for params in configurations]
