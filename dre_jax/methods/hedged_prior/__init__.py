"""The recommended method: priors that past tasks teach, hedged by processes of the task by itself.

Read `method` first, then `prior` (what past tasks teach) and `training`, `hypotheses` (what a prior may be worth on a
new task), `task_process` (the task by itself), and `posterior` (the mixture of all of them).
"""
