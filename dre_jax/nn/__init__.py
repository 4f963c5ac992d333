"""Neural networks that several methods use."""
