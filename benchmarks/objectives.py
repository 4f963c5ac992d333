"""Searches of many objectives: ``python -m benchmarks.objectives [--objectives 4 6] [--methods gp] [--seeds N]``.

Prints, for DTLZ2 (Deb et al. 2005) of M objectives and M + 3 hyperparameters, the share of the hypervolume of the true
front after half of the trials and after all of them, a mean over seeds ± its standard error, and the processor
milliseconds of a suggestion then, the median of five that compile nothing. Volumes are between the front and the
reference point of the searches, 1.1 in each objective, and exact. ``random`` draws configurations.
"""

import argparse
import math
import statistics
import time

import numpy as np

from dre_jax.suggest.hypervolume import hypervolume
from dre_jax.tuning import EngineConfig, Float, Optimizer, Space

WORST = 1.1
"""The reference point, in each objective."""
DISTANCES = 4
"""Hyperparameters that only move away from the front."""
TIMED = 5
"""Suggestions whose time is taken."""


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.objectives",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--objectives", type=int, nargs="+", default=[4, 6])
    parser.add_argument("--methods", nargs="+", default=["random", "gp", "gp-mixture"])
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    at = (options.trials // 2, options.trials)
    print(f"| objectives | method | at {at[0]} | at {at[1]} | CPU ms at {at[0]} | CPU ms at {at[1]} |")
    print("|---|---|---|---|---|---|")
    for m in options.objectives:
        for method in options.methods:
            searches = [search(m, method, at, seed) for seed in range(options.seeds)]
            shares = [mean_and_error([shares[i] for shares, _ in searches]) for i in range(2)]
            times = [f"{statistics.median(times[i] for _, times in searches):.0f}" for i in range(2)]
            print(f"| {m} | {method} | {' | '.join(shares)} | {' | '.join(times)} |", flush=True)


def search(m: int, method: str, at: tuple[int, int], seed: int) -> tuple[list[float], list[float]]:
    """Returns the shares of the hypervolume after two numbers of trials, and processor milliseconds of suggestions."""
    n_parts = m - 1 + DISTANCES
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(n_parts)})
    directions = {f"f{i}": "minimize" for i in range(m)}
    config = EngineConfig(method="gp" if method == "random" else method, reference_point=(WORST,) * m)
    optimizer = Optimizer(space, directions=directions, seed=seed, config=config)
    rng, values, times = np.random.default_rng(seed), list[np.ndarray](), list[float]()
    for _ in range(at[-1]):
        begin = time.process_time()
        trial = None if method == "random" else optimizer.ask()
        times.append(1e3 * (time.process_time() - begin))
        losses = dtlz2(m, rng.uniform(size=n_parts) if trial is None else space.point(trial.params))
        if trial is not None:
            optimizer.tell(trial, losses)
        values.append(np.array(losses))
    best = WORST**m - math.pi ** (m / 2) / 2**m / math.gamma(m / 2 + 1)
    shares = [hypervolume(-np.array(values[:n]), np.full(m, -WORST)) / best for n in at]
    return shares, [statistics.median(times[n - TIMED : n]) for n in at]


def dtlz2(m: int, x: np.ndarray) -> tuple[float, ...]:
    """Returns the losses, whose front is the positive part of the unit sphere."""
    angles, radius = 0.5 * np.pi * x[: m - 1], 1.0 + float(np.sum((x[m - 1 :] - 0.5) ** 2))
    sines = np.append(1.0, np.sin(angles[::-1]))
    products = np.append(1.0, np.cumprod(np.cos(angles)))[::-1]
    return tuple((radius * products * sines).tolist())


def mean_and_error(numbers: list[float]) -> str:
    """Returns a mean ± its standard error."""
    error = float(np.std(numbers, ddof=1)) / len(numbers) ** 0.5 if len(numbers) > 1 else 0.0
    return f"{np.mean(numbers):.3f} ± {error:.3f}"


if __name__ == "__main__":
    main()
