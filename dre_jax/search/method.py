"""The one protocol: the functions that the loop calls on a method, and the optional ones that a method declares."""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import getattr_static
from typing import Any, Protocol, cast

from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.search.history import Candidates, Components, History


class Method(Protocol):
    """Two pure functions; an object that is frozen and hashable, since it is static under jit."""

    def fit(self, meta: SearchSpace, key: Array) -> Any:
        """Learns from the training tasks of a search space; returns a tree of arrays, or None with nothing to learn."""
        ...

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
        """Values f32[N] of the candidates, higher = evaluate first; jit- and vmap-able, fixed shapes, masks."""
        ...


class NoMetaLearning:
    """A method that does not learn from past tasks."""

    def fit(self, meta: SearchSpace, key: Array) -> None:
        """Returns None: there is nothing to learn."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The optional parts of the protocol that a method supports; none by default.

    A method declares them as `capabilities`, a class variable, or a property if they depend on its configuration.
    Functions and attributes of a method that no capability declares are the method's own.

    Example:
      >>> from dre_jax.methods import find
      >>> capabilities_of(find("gp").make()).differentiable, capabilities_of(find("random").make()).differentiable
      (True, False)
    """

    fits_history: bool = False
    """`fit_history` and `score_candidates`, the halves of `acquire`."""
    slotwise_fit: bool = False
    """The arrays of `fit_history` have one entry for each slot of the history."""
    samples_posterior: bool = False
    """`sample_posterior`: Thompson sampling."""
    pads_columns: bool = False
    """`pad_columns`: search spaces can share a program."""
    abstracts_params: bool = False
    """`abstract_params`: the tree of the result of `fit`, which checkpoints need; without it, `fit` is traced."""
    explains_fit: bool = False
    """`explain_fit`: the decisions of `fit`."""
    double_precision: bool = False
    """Suggestions are computed in float64, except on a TPU."""
    differentiable: bool = False
    """Values of candidates have a gradient, and each depends on its own configuration alone."""
    heteroscedastic: bool = False
    """Known errors of single responses count: the method reads `History.noise_var`."""
    improvement: bool = False
    """With the acquisition function "ei", values of candidates are logarithms of the expected improvement of responses
    that are standardised over the history, or on the scale of `response_transform`."""
    predicts_components: bool = False
    """`predict_components`: predictions by a mixture of Gaussians, which studies of several objectives need. Needs
    ``fits_history``."""
    predicts_noise: bool = False
    """`noise_deviations`: the noise of each component, for predictions of new trials. Needs ``predicts_components``."""
    transforms_responses: bool = False
    """`response_transform`: predictions and improvements are on a scale of the method's own, not standardised. Needs
    ``predicts_components``."""
    weighs_past: bool = False
    """`past_weight`: the fit to a history says how far it relies on past tasks. Needs ``fits_history``."""
    transfer: bool | None = None
    """Whether `fit` learns from past tasks as configured; None if the method's `Entry` says so."""


class CapableMethod(Method, Protocol):
    """The functions of a method that its capabilities declare; see `CAPABILITY_FUNCTIONS`."""

    def fit_history(self, params: Any, history: History, key: Array) -> Any:
        """Returns the parameters fitted to the history, a tree of arrays.

        ``score_candidates(fit_history(params, history, key), history, candidates)`` equals `acquire`. The arrays have
        the same shapes for histories of all sizes, unless the method declares ``slotwise_fit``: then they have one
        entry for each slot of the history.
        """
        ...

    def score_candidates(self, fitted_params: Any, history: History, candidates: Candidates) -> Array:
        """Returns values f32[N] of the candidates."""
        ...

    def sample_posterior(self, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns values f32[N] of the candidates, higher = evaluate first, by one sampled model."""
        ...

    def predict_components(self, fitted_params: Any, history: History, candidates: Candidates) -> Components:
        """Returns the predicted responses of the candidates, on the scale of `response_transform`."""
        ...

    def noise_deviations(self, fitted_params: Any, noise_var: Array) -> Array:
        """Returns the standard deviations f[K] of the noise of a new trial under each component.

        ``noise_var`` is the variance of the trial's known error, a scalar; both are on the scale of
        `response_transform`.
        """
        ...

    def response_transform(self, fitted_params: Any) -> Any:
        """Returns the `dre_jax.gp.response_scale.ResponseTransform` from the history's responses to predictions."""
        ...

    def past_weight(self, fitted_params: Any) -> Array:
        """Returns the weight in [0, 1] of models that use past tasks, a scalar."""
        ...

    def pad_columns(self, params: Any, n_columns: int, width: int) -> Any:
        """Returns parameters for tables with more columns; values stay the same where the added columns are zero."""
        ...

    def abstract_params(self, n_columns: int) -> Any:
        """Returns the tree of the result of `fit` for tables of D columns, with the shapes and dtypes of the arrays.

        Parts of it that `fit` may return as None are there. Numbers of tasks or rows may be any.
        """
        ...

    def explain_fit(self, params: Any) -> Mapping[str, str]:
        """Returns the decisions of `fit` and their reasons by subject, a line each."""
        ...


CAPABILITY_FUNCTIONS = {
    "fits_history": ("fit_history", "score_candidates"),
    "samples_posterior": ("sample_posterior",),
    "predicts_components": ("predict_components",),
    "predicts_noise": ("noise_deviations",),
    "transforms_responses": ("response_transform",),
    "weighs_past": ("past_weight",),
    "pads_columns": ("pad_columns",),
    "abstracts_params": ("abstract_params",),
    "explains_fit": ("explain_fit",),
}
"""Functions of `CapableMethod` that a method with a capability must have."""

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


def decisions_of(method: Method, params: Any) -> dict[str, str]:
    """Returns the decisions of `fit` and their reasons, by subject; empty for a method without `explain_fit`."""
    return dict(cast(CapableMethod, method).explain_fit(params)) if capabilities_of(method).explains_fit else {}


def value(
    method: Method, params: Any, history: History, candidates: Candidates, key: Array, *, sample: bool = False
) -> Array:
    """Returns values f32[N] of the candidates; with ``sample``, the values of one sampled model.

    Raises `ConfigError` if the method cannot sample.
    """
    if sample:
        return as_posterior_sampling(method).sample_posterior(params, history, candidates, key)
    return method.acquire(params, history, candidates, key)


def as_history_fit(method: Method) -> CapableMethod | None:
    """Returns the method if it has `fit_history` and `score_candidates`, else None."""
    return cast(CapableMethod, method) if capabilities_of(method).fits_history else None


def as_posterior_sampling(method: Method) -> CapableMethod:
    """Returns the method; raises `ConfigError` if it cannot sample a model."""
    if not capabilities_of(method).samples_posterior:
        raise ConfigError(f"draws need a method that has several models, but got {type(method).__name__}")
    return cast(CapableMethod, method)
