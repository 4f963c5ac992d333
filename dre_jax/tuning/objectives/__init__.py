"""The criterion of a search: one objective with its method, or several by the expected hypervolume improvement."""
