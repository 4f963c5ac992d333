"""What `scripts/make_bundled_data.py` is made of: the tasks, the search spaces, the score, the files."""
