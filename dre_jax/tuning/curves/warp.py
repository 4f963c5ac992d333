"""Learning curves of a study as numbers near a normal distribution."""

from typing import NamedTuple

import numpy as np

_MARGIN = 0.2
_LIMIT = 6.0
_LEAST = 1e-3


class Warp(NamedTuple):
    """Increasing map of a study's responses: -log of the distance to a bound above the best one, standardised.

    A curve that approaches the bound exponentially is a line.
    """

    bound: float
    centre: float
    scale: float

    def forward(self, responses: np.ndarray) -> np.ndarray:
        """Returns scores within ±6."""
        distance = np.maximum((self.bound - responses) / self.centre, _LEAST)
        return np.clip(-np.log(distance) / self.scale, -_LIMIT, _LIMIT)

    def backward(self, scores: np.ndarray) -> np.ndarray:
        """Returns the responses of scores."""
        return self.bound - self.centre * np.exp(-self.scale * scores)


def fit_warp(responses: np.ndarray) -> Warp:
    """Returns the map of responses f64[n, G] whose final values get the median 0 and the standard deviation 1.

    The responses are finite, and the last ones differ.
    """
    best, last = responses.max(), responses[:, -1]
    margin = _MARGIN * (best - np.median(last)) or _MARGIN * (best - last.min())
    distance = best + margin - last
    centre = float(np.median(distance))
    return Warp(float(best + margin), centre, float(np.std(np.log(distance / centre))))
