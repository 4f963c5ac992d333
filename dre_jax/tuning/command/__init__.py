"""What ``dre-jax tune`` runs: a command a trial, its output, the study's picture and table."""
