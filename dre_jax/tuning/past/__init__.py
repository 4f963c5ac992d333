"""Past tasks to learn from: evaluations, Optuna's studies, tables, Syne Tune's experiments."""
