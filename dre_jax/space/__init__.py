"""Search spaces: hyperparameters, conditions and rules, their encoding, and the spaces of other libraries."""
