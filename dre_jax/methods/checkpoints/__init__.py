"""Checkpoints of methods with all that they learned, and meta-training into a folder."""
