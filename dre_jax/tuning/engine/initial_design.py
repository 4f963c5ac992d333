"""The configurations that precede those of the method: defaults, the start design, Sobol points."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.projection import allowed_points, fix_coordinates
from dre_jax.space.sobol import sobol_points
from dre_jax.space.space import Params, Space
from dre_jax.tuning.suggestion.beliefs import to_quantiles
from dre_jax.tuning.suggestion.space_filling import SEQUENCE

_N_COMPLETIONS = 64
"""Number of points that may complete a part of a configuration whose rules refuse the default point."""


def sequence_seed(seed: int, number: int) -> int:
    """Returns the seed of a study's Sobol sequence of a number: a trial's for its candidates, a block's otherwise."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


@dataclass(frozen=True)
class InitialDesign:
    """Configurations of a trial that no method chooses."""

    space: Space
    start: tuple[Params, ...] | None
    """The surrogate's start design; None without a surrogate."""
    seed: int
    log_densities: np.ndarray | None
    """Log densities of likely values, see `dre_jax.tuning.suggestion.beliefs`; None ignores beliefs."""
    n_start: int
    """Number of Sobol points that are evaluated first without a surrogate."""
    number: int
    """Number of the trial."""
    fixed_coordinates: np.ndarray
    """f64[P], see `Space.coordinates`."""

    def initial_configurations(self, n_evaluated: int) -> Iterable[Params]:
        """Returns the configurations that precede those of the method: defaults first."""
        start, defaults = self.start or (), self.space.defaults
        if n_evaluated >= (self.n_start if self.start is None else len(start) + bool(defaults)):
            return
        points = self._sobol_points(0)  # the same for every trial, so that evaluated configurations are recognised
        if defaults:
            active = self.space.params(fix_coordinates(points[0], self.space.coordinates(defaults)))
            start = ({name: value for name, value in defaults.items() if name in active}, *start)
        for params, point in zip(start, points, strict=False):
            configuration = self._start_configuration(params, point)
            if configuration is not None:
                yield configuration
        if self.start is None:
            yield from map(self.space.params, self.filling_points())

    def _start_configuration(self, params: Params, default_point: np.ndarray) -> Params | None:
        """Returns a part of a configuration, completed by a default point; None if it is not in the space."""
        try:
            coordinates = self.space.coordinates(params)
        except DataError:
            return None
        fixed = np.where(np.isnan(self.fixed_coordinates), coordinates, self.fixed_coordinates)
        point = fix_coordinates(default_point, fixed)
        if not self.space.layout.is_allowed(point):
            try:
                point = self._allowed_points(_N_COMPLETIONS, 0, likely_share=1.0, fixed=fixed)[0]
            except ConfigError:
                return None
        if not set(params) <= set(self.space.params(fix_coordinates(point, coordinates))):
            return None
        configuration = self.space.params(point)
        if np.isnan(self.fixed_coordinates).all():
            configuration = self.space.exact(configuration | params)  # to the last digit
        return self.space.check(configuration) if self.space.allows(configuration) else None

    def filling_points(self) -> np.ndarray:
        """Returns points f64[n, P] that fill the space, from that of the trial's number on."""
        return self._sobol_points(self.number)

    def _sobol_points(self, number: int) -> np.ndarray:
        """Returns points of a scrambled Sobol sequence, the trial's first; every other trial has likely values.

        All trials share one sequence, so that they are spread evenly; another one follows after `SEQUENCE` trials.
        """
        block, offset = divmod(number, SEQUENCE)
        return np.roll(self.sequence_points(block, are_likely=number % 2 == 0), -offset, axis=0)

    def sequence_points(self, block: int, *, are_likely: bool) -> np.ndarray:
        """Returns the points f64[`SEQUENCE`, P] of a block of trials that fill the space, or its likely values."""
        return self._allowed_points(SEQUENCE, block, likely_share=1.0 if are_likely else 0.0)

    def candidate_points(self, n: int) -> np.ndarray:
        """Returns n points of the trial's Sobol sequence, half of them of likely values: candidates of a method."""
        # Half of them, as several likely ranges may share a small part of the space.
        return self._allowed_points(n, self.number, likely_share=0.5)

    def _allowed_points(self, n: int, number: int, likely_share: float, fixed: np.ndarray | None = None) -> np.ndarray:
        """Returns n points of a trial's sequence with fixed coordinates, by default those of the design."""
        fixed_coordinates = self.fixed_coordinates if fixed is None else fixed

        def draw(n: int) -> np.ndarray:
            points = sobol_points(n, len(fixed_coordinates), sequence_seed(self.seed, number))
            if self.log_densities is not None and likely_share:
                start = round((1.0 - likely_share) * n)
                points = np.vstack([points[:start], to_quantiles(self.log_densities, points[start:])])
            return fix_coordinates(points, fixed_coordinates)

        return allowed_points(self.space.layout, draw, n, fixed_coordinates)
