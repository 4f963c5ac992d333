"""The recommended method: priors learned from past tasks, averaged with Gaussian processes of the task alone.

Read `hedged_prior` first, then `priors` (learned priors), `hypotheses` (how they apply to a new task),
`common_process` (the prior that few past tasks have in common), `dre_jax.gp.task_processes` (processes without past
tasks), `mixture` (all components with their weights), `improvement_weights`, and `training` with `held_out`.
`gp_mixture` is the mixture without past tasks; `mixture_method` has what both methods share.
"""
