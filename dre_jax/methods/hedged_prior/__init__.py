"""The recommended method: priors learned from past tasks, averaged with Gaussian processes of the task alone.

Read `method` first, then `prior` and `training` (learned priors), `hypotheses` (how they apply to a new task),
`common_process` (the process that few past tasks have in common), `task_process` (processes without past tasks), and
`posterior` (the mixture of all components).
"""
