"""Parts of `scripts/make_bundled_data.py`: the tasks, the search spaces, the score, the files."""
