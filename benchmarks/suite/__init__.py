"""Parts of ``python -m benchmarks``: the rows, the peers, the floors, and the tables."""
