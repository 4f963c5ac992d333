"""Trials of a study: the trial, objectives with their directions, values as responses, and trials as arrays."""
