"""Studies of several objectives: the method of the expected hypervolume improvement, its engine, the front."""
