"""Neural networks that methods share; `networks` alone imports flax."""
