"""The networks in plain float64 NumPy."""

import numpy as np
import pytest


def dense_layers(params, name, x):
    """Layers <name>_0, <name>_1, ...: each an affine map with ReLU in front of all but the first."""
    i = 0
    while f"{name}_{i}_kernel" in params:
        x = np.maximum(x, 0.0) if i else x
        x = x @ params[f"{name}_{i}_kernel"] + params[f"{name}_{i}_bias"]
        i += 1
    return x


def in_float64(params):
    return {name: np.asarray(a, np.float64) for name, a in params.items()}


class PlainNetworks:
    """One list through one network, item by item."""

    @staticmethod
    def deep_set(params, x, response, where):
        params = in_float64(params)
        items = [dense_layers(params, "phi", np.append(x[i], response[i])) for i in np.flatnonzero(where)]
        mean = sum(items) / len(items) if items else np.zeros(params["rho_0_kernel"].shape[0])
        return dense_layers(params, "rho", mean)

    @staticmethod
    def scorer(params, x, context=()):
        params = in_float64(params)
        scores = []
        for row in x:
            hidden = np.maximum(dense_layers(params, "hidden", np.concatenate([row, context])), 0.0)
            scores.append((hidden @ params["out_kernel"] + params["out_bias"]).item())
        return np.array(scores)


@pytest.fixture(scope="session")
def plain():
    return PlainNetworks
