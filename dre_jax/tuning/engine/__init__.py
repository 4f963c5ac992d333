"""The engine of suggestions: initial trials, models of costs and failures, and the call of the method."""
