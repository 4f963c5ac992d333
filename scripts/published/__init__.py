"""Parts of `scripts/reproduce_published.py`: the paper's experiments, and its statements about them."""
