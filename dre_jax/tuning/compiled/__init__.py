"""Studies as arrays: suggestions of many studies in one compiled program, the same as those of `Optimizer`."""
