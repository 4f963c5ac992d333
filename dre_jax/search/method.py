"""The protocols of methods: the two functions of every method, and the optional ones that some methods have.

The presence of a function says what a method can do: ``isinstance(method, PosteriorMethod)``. `Capabilities` declares
what no function can say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import getattr_static
from typing import Any, Protocol, cast, runtime_checkable

from jax import Array
from jaxtyping import Float, Key

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.search.history import Candidates, Components, History


class Method(Protocol):
    """Two pure functions; an object that is frozen and hashable, since it is static under jit."""

    def fit(self, meta: SearchSpace, key: Key[Array, ""]) -> Any:
        """Learns from the training tasks of a search space; returns a tree of arrays, or None with nothing to learn."""
        ...

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Key[Array, ""]) -> Float[Array, " N"]:
        """Values of the candidates, higher = evaluate first; jit- and vmap-able, fixed shapes, masks."""
        ...


class NoMetaLearning:
    """A method that does not learn from past tasks."""

    def fit(self, meta: SearchSpace, key: Key[Array, ""]) -> None:
        """Returns None: there is nothing to learn."""


@runtime_checkable
class HistoryMethod(Method, Protocol):
    """A method whose `acquire` has two halves: the first one reads the trials alone."""

    def fit_history(self, params: Any, history: History, key: Key[Array, ""]) -> Any:
        """Returns the parameters fitted to the history, a tree of arrays.

        ``score_candidates(fit_history(params, history, key), history, candidates)`` equals `acquire`. The arrays have
        the same shapes for histories of all sizes, unless the method declares ``slotwise_fit``: then they have one
        entry for each slot of the history.
        """
        ...

    def score_candidates(self, fitted_params: Any, history: History, candidates: Candidates) -> Float[Array, " N"]:
        """Returns values of the candidates.

        With the acquisition function "ei", the values of a `PosteriorMethod` are logarithms of the expected improvement
        on the scale of `response_transform`.
        """
        ...


@runtime_checkable
class PosteriorMethod(HistoryMethod, Protocol):
    """A method that predicts responses by a mixture of Gaussians.

    Predictions of a study, expected gains, and studies of several objectives need it.

    Example:
      >>> from dre_jax.methods import find
      >>> isinstance(find("gp").make(), PosteriorMethod), isinstance(find("dre").make(), PosteriorMethod)
      (True, False)
    """

    def predict_components(self, fitted_params: Any, history: History, candidates: Candidates) -> Components:
        """Returns the predicted responses of the candidates, on the scale of `response_transform`."""
        ...

    def noise_deviations(self, fitted_params: Any, noise_var: Float[Array, ""]) -> Float[Array, " K"]:
        """Returns the standard deviations of the noise of a new trial under each component.

        ``noise_var`` is the variance of the trial's known error; both are on the scale of `response_transform`.
        """
        ...

    def response_transform(self, fitted_params: Any) -> Any:
        """Returns the `dre_jax.gp.response_scale.ResponseTransform` from the history's responses to predictions."""
        ...


@runtime_checkable
class SamplingMethod(Method, Protocol):
    """A method that samples models, for parallel trials (Thompson sampling)."""

    def sample_posterior(
        self, params: Any, history: History, candidates: Candidates, key: Key[Array, ""]
    ) -> Float[Array, " N"]:
        """Returns values of the candidates, higher = evaluate first, by one sampled model."""
        ...


@runtime_checkable
class PastWeighingMethod(HistoryMethod, Protocol):
    """A method whose fit to a history says how far it relies on past tasks."""

    def past_weight(self, fitted_params: Any) -> Float[Array, ""]:
        """Returns the weight in [0, 1] of models that use past tasks."""
        ...


@runtime_checkable
class PaddingMethod(Method, Protocol):
    """A method whose search spaces can share a program; see `as_padding`."""

    def pad_columns(self, params: Any, n_columns: int, width: int) -> Any:
        """Returns parameters for tables with more columns; values stay the same where the added columns are zero."""
        ...


@runtime_checkable
class FeatureMethod(Method, Protocol):
    """A method that relates tasks by their features, `Task.features`."""

    def for_task(self, params: Any, features: Float[Array, " P"]) -> Any:
        """Returns the parameters for a new task with features; NaN where unknown.

        The result of `fit` is for a task of unknown features.
        """
        ...

    def scaling_slopes(self, params: Any) -> tuple[Float[Array, "D P"], Float[Array, "D P"]] | None:
        """Returns how the best configuration moves with the features, and standard errors of this.

        The unit is that of a column divided by that of a feature. None if the past tasks have no features.
        """
        ...


@runtime_checkable
class AbstractParamsMethod(Method, Protocol):
    """A method that states the tree of its parameters, which checkpoints need; of other methods, `fit` is traced."""

    def abstract_params(self, n_columns: int) -> Any:
        """Returns the tree of the result of `fit` for tables of D columns, with the shapes and dtypes of the arrays.

        Parts of it that `fit` may return as None are there. Numbers of tasks or rows may be any.
        """
        ...


@runtime_checkable
class ExplainingMethod(Method, Protocol):
    """A method that explains its fit to past tasks."""

    def explain_fit(self, params: Any) -> Mapping[str, str]:
        """Returns the decisions of `fit` and their reasons by subject, a line each."""
        ...


OPTIONAL_PROTOCOLS = (
    HistoryMethod,
    PosteriorMethod,
    SamplingMethod,
    PastWeighingMethod,
    PaddingMethod,
    FeatureMethod,
    AbstractParamsMethod,
    ExplainingMethod,
)
"""The protocols that a method may follow; a method with one function of a protocol must have all of them."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What holds for a method, and no function says; nothing by default.

    A method declares it as `capabilities`, a class variable, or a property if it depends on the configuration.

    Example:
      >>> from dre_jax.methods import find
      >>> capabilities_of(find("gp").make()).differentiable, capabilities_of(find("random").make()).differentiable
      (True, False)
    """

    slotwise_fit: bool = False
    """The arrays of `fit_history` have one entry for each slot of the history."""
    double_precision: bool = False
    """Suggestions are computed in float64, except on a TPU."""
    differentiable: bool = False
    """Values of candidates have a gradient, and each depends on its own configuration alone."""
    heteroscedastic: bool = False
    """Known errors of single responses count: the method reads `History.noise_var`."""
    transfer: bool | None = None
    """Whether `fit` learns from past tasks as configured; None if the method's `Entry` says so."""


_NO_CAPABILITIES = Capabilities()


def capabilities_of(method: object) -> Capabilities:
    """Returns the capabilities that a method declares; none if it declares nothing.

    Raises `ConfigError` if its `capabilities` are not `Capabilities`, or cannot be read; for a name or a class.
    """
    if isinstance(method, (str, type)):
        raise ConfigError(f"a method must be an object, such as find('dre').make(), but got {method!r}")
    rule = f"capabilities of the method {type(method).__name__} must be Capabilities(...)"
    try:
        declared: object = getattr_static(method, "capabilities", None) and cast(Any, method).capabilities
    except AttributeError as error:  # of a property, which `getattr` would take for no declaration
        raise ConfigError(f"{rule}, but cannot be read: {error}") from error
    if not isinstance(declared, Capabilities | None):
        raise ConfigError(f"{rule}, but are {declared!r}")
    return declared or _NO_CAPABILITIES


def learns_from_past(method: object, default: bool = True) -> bool:
    """Returns whether `fit` learns from past tasks; the default holds for a method that declares nothing about it."""
    transfer = capabilities_of(method).transfer
    return default if transfer is None else transfer


def as_padding(method: Method) -> PaddingMethod | None:
    """Returns the method if it can pad its parameters, else None; it has none if it learns nothing from past tasks."""
    return method if learns_from_past(method) and isinstance(method, PaddingMethod) else None


def decisions_of(method: Method, params: Any) -> dict[str, str]:
    """Returns the decisions of `fit` and their reasons, by subject; empty for a method without `explain_fit`."""
    return dict(method.explain_fit(params)) if isinstance(method, ExplainingMethod) else {}


def value(
    method: Method, params: Any, history: History, candidates: Candidates, key: Key[Array, ""], *, sample: bool = False
) -> Float[Array, " N"]:
    """Returns values of the candidates; with ``sample``, the values of one sampled model.

    Raises `ConfigError` if the method cannot sample.
    """
    if sample:
        return as_posterior_sampling(method).sample_posterior(params, history, candidates, key)
    return method.acquire(params, history, candidates, key)


def as_posterior_sampling(method: Method) -> SamplingMethod:
    """Returns the method; raises `ConfigError` if it cannot sample a model."""
    if not isinstance(method, SamplingMethod):
        raise ConfigError(f"draws need a method that has several models, but got {type(method).__name__}")
    return method
