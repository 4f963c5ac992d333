"""A bench of live tasks: functions whose optimum is known, pasts of every kind, and the tuners that are compared."""
