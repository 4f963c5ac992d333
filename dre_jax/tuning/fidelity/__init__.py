"""Trials that pause: budgets, which configuration to train next, and how far."""
