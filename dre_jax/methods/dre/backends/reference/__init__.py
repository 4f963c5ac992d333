"""Training steps in JAX, which support everything that can be asked for, and are the oracle of the other loops."""
