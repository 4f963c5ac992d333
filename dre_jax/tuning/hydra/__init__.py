"""Sweeps of Hydra: what the sweeper ``dre`` runs. Hydra finds the sweeper itself in ``hydra_plugins``."""
