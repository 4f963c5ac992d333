"""Numerical optimisation that methods share: Adam and its schedules, and a projected BFGS in a box."""
