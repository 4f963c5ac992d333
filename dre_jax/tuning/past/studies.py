"""Past studies that a surrogate keeps, as Gaussian processes, and how they compare with trials.

A surrogate needs no rows of past studies for suggestions. It keeps a bounded number of them, so that a user can see
which study is like the current one. A Gaussian process of each study predicts the responses at the trials, so that the
study and the trials need no configuration in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dre_jax.data.features import FeatureSpace
from dre_jax.data.spaces import SearchSpace
from dre_jax.data.tasks import spaced_rows, tie_levels, unit_scale
from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.length_scale_prior import generic_prior
from dre_jax.gp.regression import GPParams, condition_on_history, matmul, signal_covariance
from dre_jax.gp.response_scale import standardise
from dre_jax.gp.source_processes import SourceTasks
from dre_jax.gp.task_process import TaskProcess
from dre_jax.gp.task_processes import TaskProcessConfig, fixed_processes
from dre_jax.methods.baselines.source_processes import draw_task_rows, gather_rows, misranked_share
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.search.history import History
from dre_jax.search.method import PastWeighingMethod
from dre_jax.space.space import Space
from dre_jax.tuning.past.tasks import Evaluated, Past, past_of

MAX_STUDIES, MAX_ROWS = 50, 100
"""Maximum numbers of studies that a surrogate keeps, and of rows of each."""
_FITTING = GPConfig(optimiser="bfgs", steps=30)
_BUCKET = 32  # slots are a multiple of it, so that few programs are compiled
_SAMPLES = 128  # of unrelated functions
_TEST_ROWS = 64
_SLOPES = (0.25, 0.5, 1.0)
_DEGREES_OF_FREEDOM = 4.0
_ARRAYS = ("x", "y", "where", "log_length", "log_scale", "log_noise")


class PastStudies(NamedTuple):
    """Rows and Gaussian processes of S past studies."""

    all_names: tuple[str, ...]
    """Names of all studies that the surrogate learned from, at least S."""
    tasks: SourceTasks
    """At most `MAX_ROWS` rows of each study."""
    params: GPParams
    """Hyperparameters of the Gaussian process of each study; S in front of each array."""
    costs: np.ndarray | None = None
    """f32[S, n]: costs of the rows, NaN where unknown; None if all are."""
    features: np.ndarray | None = None
    """f32[S, P]: features of the studies, NaN where unknown; None if they have none."""

    @property
    def names(self) -> list[str]:
        """S names."""
        return _select_names(self.all_names)

    def evaluations(self, space: Space) -> dict[str, list[Evaluated]]:
        """Returns the rows by study: configurations of a space, and responses, standardised in each study."""
        x, y, where = map(np.asarray, self.tasks)
        costs = np.full(y.shape, np.nan) if self.costs is None else self.costs

        def evaluation(row: tuple[Any, ...]) -> Evaluated:
            params = space.decode(x[row], drop_absent=True)
            return Evaluated(params, float(y[row]), None if np.isnan(costs[row]) else float(costs[row]))

        return {name: [evaluation((s, i)) for i in np.flatnonzero(where[s])] for s, name in enumerate(self.names)}

    def past_in(
        self,
        space: Space,
        encoding: Space,
        features: FeatureSpace | None,
        *,
        absent: Mapping[str, Any] | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> Past:
        """Returns the rows as past tasks of another space than the one that encodes them; see `Surrogate.past_in`."""
        values, types = None, None
        if features is not None and self.features is not None:
            values, types = dict(zip(self.names, map(features.decode, self.features), strict=True)), features.types
        return past_of(
            space,
            self.evaluations(encoding),
            direction="maximize",
            absent=absent,
            renamed=renamed,
            features=values,
            feature_types=types,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by name, for a checkpoint."""
        fields = {**self.tasks._asdict(), **vars(self.params)}
        optional = {"costs": self.costs, "features": self.features}
        known = {name: array for name, array in optional.items() if array is not None}
        return {name: np.asarray(fields[name]) for name in _ARRAYS} | known

    @classmethod
    def from_arrays(cls, all_names: tuple[str, ...], arrays: Mapping[str, Any]) -> PastStudies:
        """Returns the studies of the arrays that `arrays` returned."""
        x, y, where, length, scale, noise = jax.tree.map(np.asarray, [arrays[name] for name in _ARRAYS])
        costs, features = (np.asarray(arrays[name]) if name in arrays else None for name in ("costs", "features"))
        return cls(all_names, SourceTasks(x, y, where), GPParams(length, scale, noise), costs, features)


def keep_studies(meta: SearchSpace, key: Array) -> PastStudies:
    """Returns at most `MAX_STUDIES` of the training tasks, evenly spaced in their order, with random rows of each."""
    names = tuple(meta.require_train_tasks())
    selection = SearchSpace(meta.name, {name: meta.train[name] for name in _select_names(names)})
    numbers = draw_task_rows(selection, MAX_ROWS, key)
    tasks = gather_rows(selection, numbers)
    tasks = SourceTasks(*jax.device_put([_pad_axis(np.asarray(a), axis=1) for a in tasks]))
    on_host = jax.tree.map(np.asarray, (tasks, _fit_processes(tasks)))
    costs = np.full(on_host[0].y.shape, np.nan, np.float32)
    for of_study, task, rows in zip(costs, selection.train.values(), numbers, strict=True):
        of_study[: len(rows)] = np.nan if task.costs is None else task.costs[rows]
    known_costs = None if np.isnan(costs).all() else costs
    features = [task.features for task in selection.train.values() if task.features is not None]
    return PastStudies(names, on_host[0], on_host[1], known_costs, np.array(features, np.float32) if features else None)


def _select_names(names: Sequence[str]) -> list[str]:
    """Returns at most `MAX_STUDIES` names, evenly spaced."""
    return [names[i] for i in spaced_rows(len(names), MAX_STUDIES)]


def _pad_axis(array: np.ndarray, axis: int) -> np.ndarray:
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % _BUCKET)
    return np.pad(array, widths)


@jit_with_less_effort(is_brief=few_numbers)
def _fit_processes(tasks: SourceTasks) -> GPParams:
    params: GPParams = lax.map(lambda task: fit_gp(_FITTING, *task), tasks)
    return params


class Comparison(NamedTuple):
    """Past studies compared with trials."""

    agreement: np.ndarray
    """f[S]: Kendall's rank correlation of a study's predictions and the responses of the trials, in [-1, 1]."""
    agreement_error: np.ndarray
    """f[S]: its standard deviation for functions that are unrelated to the trials and as smooth as the study."""
    gain: np.ndarray
    """f[S]: log predictive density of the trials with the study minus that without, see `compare_studies`."""


def compare_studies(studies: PastStudies, x: np.ndarray, responses: np.ndarray) -> Comparison:
    """Compares past studies with trials x [n, D], in the columns of the studies, and their responses [n].

    The agreement of an unrelated study would vary around zero: the more so, the fewer trials there are and the closer
    together they are. The error is therefore that of functions drawn from the prior of the study's process.

    The gain compares two models of the standardised responses, y = s m(x) + f(x) + noise, with the study's standardised
    predictions m and without them (s = 0). f is a Gaussian process without past tasks. By the chain rule, the log
    density of all trials is the sum of those of each trial given the trials before it: the gain says how much better
    the trials are predicted, one step ahead. The densities are averaged over slopes s and length scales.
    """
    n = len(responses)
    if n < 2:
        nothing = np.zeros(len(studies.names))
        return Comparison(nothing, np.full_like(nothing, np.inf), nothing)
    trials = x.astype(np.float32), unit_scale(responses).astype(np.float32), tie_levels(responses), np.ones(n, np.bool_)
    arrays = jax.device_put([_pad_axis(a, axis=0) for a in trials])
    return Comparison(*map(np.asarray, _compare(studies.tasks, studies.params, *arrays)))


def studies_apart(studies: PastStudies) -> list[str]:
    """Returns the names of the studies that the other studies do not help to predict; empty for a single study.

    At most `_TEST_ROWS` rows of each study are predicted.
    """
    names, (x, y, where) = studies.names, studies.tasks
    apart = []
    for i, name in enumerate(names if len(names) > 1 else ()):
        rows = np.flatnonzero(where[i])[:_TEST_ROWS]
        gains = np.delete(compare_studies(studies, np.asarray(x[i])[rows], np.asarray(y[i])[rows]).gain, i)
        # The mean of the ratios of densities is below 1.
        apart += [name] if np.logaddexp.reduce(gains) < np.log(len(gains)) else []
    return apart


@jit_with_less_effort(is_brief=few_numbers)
def _compare(
    tasks: SourceTasks, params: GPParams, x: Array, responses: Array, level: Array, where: Array
) -> tuple[Array, Array, Array]:
    y = standardise(responses, where).y
    prior = generic_prior(x.shape[1])
    processes = fixed_processes(TaskProcessConfig(), prior)
    normal = jax.random.normal(jax.random.key(0), (_SAMPLES, x.shape[0]), x.dtype)
    history = History(x, y, level, where)
    without = _log_density(processes, history)

    def compare(study: tuple[SourceTasks, GPParams]) -> tuple[Array, Array, Array]:
        task, params = study
        posterior = condition_on_history(params, *task)
        cross = jnp.where(task.where[:, None], signal_covariance(params, task.x, x), 0.0)
        mean = standardise(matmul(posterior.weights, cross), where).y
        lower, _ = safe_cholesky(signal_covariance(params, x, x), jnp.exp(params.log_scale))
        unrelated_agreement = _kendall(matmul(normal, lower.T), level, where)
        error = jnp.sqrt(jnp.mean(unrelated_agreement**2))
        densities = [_log_density(processes, history.with_response(y - s * mean)) for s in _SLOPES]
        gain = jax.nn.logsumexp(jnp.stack(densities)) - jnp.log(len(_SLOPES)) - without
        return _kendall(mean, level, where), error, gain

    result: tuple[Array, Array, Array] = lax.map(compare, (tasks, params))
    return result


def _kendall(predictions: Array, level: Array, where: Array) -> Array:
    """Returns Kendall's correlation of predictions f[..., n] and responses by the pairs of different responses."""
    return 1.0 - 2.0 * misranked_share(predictions, level, where)


def _log_density(processes: TaskProcess, trials: History) -> Array:
    """Returns the log of the mean density of the trials over processes, a scalar."""

    def log_density(process: TaskProcess) -> Array:
        return process.log_density(trials, _DEGREES_OF_FREEDOM)

    log_densities = jax.vmap(log_density)(processes)
    return jax.nn.logsumexp(log_densities) - jnp.log(len(log_densities))


@jit_with_less_effort("method", is_brief=few_numbers)
def weigh_past(method: PastWeighingMethod, params: Any, history: History, count: int | Array) -> Array:
    """Returns the weight of the past given the first ``count`` trials."""
    first = history._replace(where=history.where & (jnp.arange(history.where.shape[0]) < count))
    return method.past_weight(method.fit_history(params, first, jax.random.key(0)))
