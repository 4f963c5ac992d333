"""Sizes and switches of the model: one frozen, hashable configuration (static under jit)."""

from dataclasses import dataclass
from typing import Literal

from dre_jax.checks import AtLeastOne, Checked, Layers, Positive, one_of
from dre_jax.nn.initial import Initialiser

Context = Literal["own", "shared", "none"]
ResponseScale = Literal["support", "table"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Checked):
    """Sizes of an ensemble of scorers and of the deep set in front of them.

    Raises:
      ConfigError: where a size is not positive or a name is unknown.

    Example:
      >>> ModelConfig(members=5, context="none").scorer_inputs(n_columns=6)
      6
    """

    members: AtLeastOne[int] = 10
    """Scorers in the ensemble."""
    hidden: Layers = (32, 32, 32, 32)
    """Hidden layers of a scorer."""
    context: Context = "own"
    """Deep set: each member its own, one shared by all, or none."""
    phi: Layers = (32, 32, 32)
    """Layers of the deep set before the mean."""
    rho: Layers = (32, 32, 16)
    """Layers of the deep set after the mean; the last is the size of the context."""
    response_scale: ResponseScale = "support"
    """Responses as the deep set sees them: min-max over the support, or as given: a list's in meta-training on its
    table's scale, and a history's on its own (on the table's, if HPO-B's handler calls the method)."""
    range_limit: Positive[float] | None = None
    """k of the range controller k * tanh(a * s) of the thesis; None leaves the scores free."""
    range_slope: float = 0.01
    """a of the range controller."""
    initialiser: Initialiser = "lecun_normal"
    """Weights at random: LeCun normal with zero biases (Flax), or PyTorch's uniform +-1/sqrt(inputs) for both."""

    def scorer_inputs(self, n_columns: int) -> int:
        """Returns the width of a scorer's input: the columns of the space and the context."""
        return n_columns + (0 if self.context == "none" else self.rho[-1])


PAPER = ModelConfig(context="shared", initialiser="torch_uniform")
"""The paper's set-up (section 4.3, appendix B): ten 4 x 32 scorers behind one deep set, PyTorch's initialisation."""

PRESETS = {"default": ModelConfig(), "paper": PAPER}
"""Configurations by name."""


def preset(name: str) -> ModelConfig:
    """Returns a configuration by name.

    Raises:
      ConfigError: for an unknown name.

    Example:
      >>> preset("paper").context
      'shared'
    """
    one_of("the preset", name, PRESETS)
    return PRESETS[name]
