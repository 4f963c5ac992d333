"""Neural networks that several methods use; only `networks` imports flax."""
