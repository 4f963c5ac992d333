"""What `scripts/reproduce_published.py` draws: the paper's experiments, and what it says of them."""
