"""Training steps in JAX, which support every request, and are the oracle of the other loops."""
