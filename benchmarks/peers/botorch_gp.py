"""BoTorch's own Gaussian process and log expected improvement, over the pending rows of a table.

    pip install botorch
    dre-jax evaluate --data DIR --method benchmarks/peers/botorch_gp.py:BoTorchGP --out FILE.json

What `gp` is compared with: BoTorch's defaults (Matern 5/2 with a length scale a column here, as `gp`; its priors, its
standardisation), fitted before every trial.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike


class BoTorchGP:
    """HPO-B's call."""

    def __init__(self) -> None:
        try:
            import botorch  # noqa: F401
        except ImportError as error:
            raise ImportError("this peer needs BoTorch: pip install botorch") from error

    def observe_and_suggest(self, X_obs: ArrayLike, y_obs: ArrayLike, X_pen: ArrayLike) -> int:
        import torch
        from botorch.acquisition import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.set_num_threads(1)
        x = torch.as_tensor(np.asarray(X_obs), dtype=torch.float64)
        y = torch.as_tensor(np.asarray(y_obs), dtype=torch.float64).reshape(-1, 1)
        y = (y - y.mean()) / (y.std(correction=0) if y.std(correction=0) > 0 else 1.0)
        kernel = get_covar_module_with_dim_scaled_prior(ard_num_dims=x.shape[1], use_rbf_kernel=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SingleTaskGP(x, y, covar_module=kernel, outcome_transform=None)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            acquisition = LogExpectedImprovement(model, best_f=y.max())
            with torch.no_grad():
                values = acquisition(torch.as_tensor(np.asarray(X_pen), dtype=torch.float64).unsqueeze(1)).numpy()
        best = np.flatnonzero(values == values.max())
        return int(np.random.choice(best))  # noqa: NPY002 - seeded by the evaluation
