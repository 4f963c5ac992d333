"""Deep ensemble: members that predict a mean and a variance (Lakshminarayanan et al. 2017; the thesis).

Each of M perceptrons starts from its own random weights and minimises the negative Gaussian log-likelihood of the
standardised history, mean_i [log s^2(x_i) / 2 + (y_i - mu(x_i))^2 / (2 s^2(x_i))], where s^2 is a softplus of the
second output, plus a floor. The members form one mixture,

    mu(x) = mean_m mu_m(x),        s^2(x) = mean_m [s_m^2(x) + mu_m^2(x)] - mu^2(x).

Members are trained anew before every trial and without adversarial examples, as in the thesis. The defaults are the
sizes of its results, 2 x 32 (3 x 32 in its description), and its rate of 0.02, but 200 steps instead of 1,000. With
1,000 steps the method was no better than random search on the validation tasks (`docs/results/earlier.md`).
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.checks import AtLeastOne, Checked, Positive
from dre_jax.errors import ConfigError
from dre_jax.methods.baselines.shared import ByResponse, gaussian_nll, mixture_moments
from dre_jax.methods.entries.entry import Entry
from dre_jax.nn.mlp import MLPConfig, MLPParams, apply, init, standard_columns
from dre_jax.optim.full_batch import FullBatchConfig, train_full_batch
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import NoMetaLearning

_NETWORK = MLPConfig(hidden=(32, 32), activation="relu", outputs=2)
_FITTING = FullBatchConfig(steps=200, learning_rate=0.02)


@dataclass(frozen=True, kw_only=True)
class DeepEnsemble(ByResponse, NoMetaLearning, Checked):
    """An ensemble fitted to the history before every trial. Raises `ConfigError` where a number is out of range."""

    members: AtLeastOne[int] = 5
    """M."""
    network: MLPConfig = _NETWORK
    """A member; its outputs are the mean, and the variance before the softplus."""
    fitting: FullBatchConfig = _FITTING
    """Training of the members."""
    least_variance: Positive[float] = 1e-6
    """Floor of the predicted variance, for responses of variance one (Lakshminarayanan et al., section 2.2)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.network.outputs != 2:
            raise ConfigError(f"the network must have 2 outputs, but got outputs={self.network.outputs}")

    def predict(
        self, params: None, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the mean and variance of the mixture of members, which are trained from random weights."""
        keys = jax.random.split(key, self.members)
        members = jax.vmap(partial(init, self.network, candidates.x.shape[-1]))(keys)
        members = self.train(members, standard_columns(history.x, history.where), y, history.where)

        def predict_rows(rows: Array) -> tuple[Array, Array]:
            return mixture_moments(*self.predictions(members, standard_columns(rows)))

        return by_blocks(predict_rows, candidates.x)

    def train(self, members: MLPParams, x: Array, y: Array, where: Array) -> MLPParams:
        """Returns members trained on a history: f[n, D] standard columns, f[n] standardised, bool[n]."""
        count = jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0)

        def loss(members: MLPParams) -> Array:
            mean, variance = self.predictions(members, x)
            losses = gaussian_nll(mean, jnp.broadcast_to(y, mean.shape), variance)
            # The sum over members: each sees the gradient of its own loss.
            return jnp.sum(jnp.where(where[None, :], losses, 0.0)) / count

        return train_full_batch(self.fitting, loss, members)

    def predictions(self, members: MLPParams, x: Array) -> tuple[Array, Array]:
        """Returns the means and variances of all members at f[n, D], f[M, n] each."""
        outputs = jax.vmap(apply, in_axes=(None, 0, None))(self.network, members, x)
        return outputs[..., 0], jax.nn.softplus(outputs[..., 1]) + self.least_variance


_FIVE = Entry(
    name="deep-ensemble",
    summary="five networks that predict mean and variance, expected improvement",
    paper="Lakshminarayanan, Pritzel and Blundell 2017",
    default=DeepEnsemble(),
)

ENTRIES = (
    _FIVE,
    _FIVE.variant(
        "deep-ensemble-10", "ten networks that predict mean and variance, expected improvement", {"members": 10}
    ),
)
