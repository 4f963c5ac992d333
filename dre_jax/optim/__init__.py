"""Numerical optimisation: Adam with its schedules, and projected BFGS in a box."""
