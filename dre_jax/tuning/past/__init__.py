"""Past tasks to learn from: evaluations, Optuna's studies and tables."""
