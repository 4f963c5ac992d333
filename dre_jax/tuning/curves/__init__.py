"""Learning curves: forecasts of the final value of a running trial, and when to stop it."""
