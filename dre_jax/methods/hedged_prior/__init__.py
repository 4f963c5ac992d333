"""The recommended method: priors learned from past tasks, averaged with Gaussian processes of the task alone.

Read `hedged_prior` first, then `priors` (learned priors and hypotheses of how they apply to a new task),
`common_process` (the prior that few past tasks have in common), `task_processes` (processes without past tasks),
`mixture` (all components with their weights), and `training`. `gp_mixture` is the mixture without past tasks;
`mixture_method` has what both methods share.
"""
