"""The motivating example's functions (the paper, section 4.1): shifted sinusoids on a grid, as tasks of the library.

The printed formula is read as y = sin((x + pi) / 2 + beta) on x = -10, -9.9, ..., 10. Responses are maximised, as
everywhere in the library. The networks see standardised x, as ten neurons bend late on [0, 1]; the paper does not say
what its own see.
"""

from __future__ import annotations

import numpy as np

from dre_jax.data import SearchSpace, Task
from dre_jax.data.spaces import Designs

X = np.linspace(-10.0, 10.0, 201)
TRAIN_SHIFTS = (11.0, 12.0, 13.0, 14.0, 15.0)
TEST_SHIFT = 8.0
# Modulo 2 pi the training shifts leave one wide gap, between 15 and 11 + 2 pi: its middle is the hardest shift. The
# paper's 8 is 14.28 on that circle, between two training tasks.
GAP_SHIFT = (15.0 + 11.0 + 2.0 * np.pi) / 2.0
TEST_SHIFTS = {"beta 8 (the paper's)": TEST_SHIFT, "beta 16.14 (in the gap)": GAP_SHIFT}
N_INITIAL = 3
REACHED = 0.99  # of a task's range: within 1 % of the optimum


def sinusoid(shift: float) -> np.ndarray:
    """The function on the grid; f64[201]."""
    return np.sin((X + np.pi) / 2.0 + shift)


def make_task(name: str, shift: float) -> Task:
    return Task(name, ((X - X.mean()) / X.std())[:, None].astype(np.float32), sinusoid(shift))


def is_reached(y: np.ndarray) -> np.ndarray:
    """Returns a mask of a task's responses within 1 % of the optimum; f64[n] -> bool[n]."""
    return (y - y.min()) / (y.max() - y.min()) >= REACHED


def initial_rows(seed: int, shifts: tuple[float, ...]) -> np.ndarray:
    """Three different rows at random, none of them within 1 % of the optimum for any of the shifts; i64[3]."""
    solved = np.any([is_reached(sinusoid(shift)) for shift in shifts], axis=0)
    return np.random.default_rng(seed).choice(np.flatnonzero(~solved), N_INITIAL, replace=False)


def make_space(n_seeds: int) -> SearchSpace:
    """The five training tasks, the two test tasks, and an initial design for each seed, named by its number."""
    train = {f"beta {shift:g}": make_task(f"beta {shift:g}", shift) for shift in TRAIN_SHIFTS}
    test = {name: make_task(name, shift) for name, shift in TEST_SHIFTS.items()}
    rows = {str(seed): initial_rows(seed, tuple(TEST_SHIFTS.values())) for seed in range(n_seeds)}
    designs: Designs = dict.fromkeys(test, rows)
    return SearchSpace("sinusoids", train=train, test=test, designs=designs)
