"""Schedules of the learning rate."""

from typing import Literal

import optax

Schedule = Literal["constant", "cosine"]


def make_schedule(name: Schedule, start: float, steps: int) -> optax.Schedule:
    """Returns a constant schedule, or a cosine decay to zero over the steps.

    Example:
      >>> round(float(make_schedule("cosine", 1.0, 10)(5)), 3)
      0.5
    """
    return optax.constant_schedule(start) if name == "constant" else optax.cosine_decay_schedule(start, max(steps, 1))


def portion_length(steps: int, most: int) -> int:
    """Returns the largest divisor of ``steps`` that is at most ``most``.

    Example:
      >>> portion_length(90, 40)
      30
    """
    return next(n for n in range(min(most, steps), 0, -1) if steps % n == 0)
