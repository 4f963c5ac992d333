"""Parts of ``python -m benchmarks``: what is timed, against whom, and how it is told."""
