"""Surrogates: a method with parameters learned from past tasks of a search space, and a start design."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dre_jax.checks import one_of
from dre_jax.data.features import FeatureSpace, FeatureValue, plain_features
from dre_jax.errors import DataError, DataWarning
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.runtime.reports import ProgressCallback
from dre_jax.search.method import FeatureMethod, Method
from dre_jax.space.json_format import to_json
from dre_jax.space.space import Params, Space
from dre_jax.summaries import summary
from dre_jax.tuning.past.readers import READERS
from dre_jax.tuning.past.studies import PastStudies
from dre_jax.tuning.past.tasks import Past
from dre_jax.tuning.surrogates.learning import learn_surrogate
from dre_jax.tuning.surrogates.new_task import encode_task, unused_features
from dre_jax.tuning.surrogates.saved_surrogate import read_surrogate, write_surrogate
from dre_jax.tuning.surrogates.scaling import Scaling, scaling_of
from dre_jax.tuning.surrogates.sources import Evaluation, Sources, compare_sources
from dre_jax.tuning.trials.objectives import DIRECTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate:
    """A method that has learned from past tasks of a search space.

    Example:
      >>> from dre_jax.tuning import Evaluated, Float, past_of
      >>> space = Space({"x": Float(0.0, 1.0)})
      >>> tasks = {str(t): [Evaluated({"x": x / 9}, -abs(x / 9 - t / 3)) for x in range(10)] for t in range(3)}
      >>> past = past_of(space, tasks, direction="maximize")
      >>> surrogate = Surrogate.fit(past, method="gcp", settings={"prior.steps": 5})
      >>> surrogate.name, len(surrogate.start)
      ('gcp', 2)
    """

    space: Space
    """The search space, with its encoding."""
    name: str
    """The method's, as in `dre_jax.methods.METHODS`."""
    method: Method
    params: Any
    """Learned parameters: a tree of arrays."""
    start: tuple[Params, ...] = ()
    """The start design: the configurations with the least joint regret on the past tasks. Hyperparameters that a past
    task does not have are missing."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Origin: tasks, key and versions."""
    direction: str | None = None
    """Direction of the past values, "minimize" or "maximize", which a study must share; None if it is unknown or the
    past tasks have both."""
    metric: str | None = None
    """Name of the past values, if they have one."""
    path: str | None = None
    """Folder of the checkpoint of a surrogate that `load` or `save` returned."""
    studies: PastStudies | None = None
    """Some rows of the past studies, for `sources`; None if it was trained on tables, or ships."""
    constrained: bool = False
    """Whether past trials violate constraints, see `Past.constrained`; trials of a study are then ranked like them."""
    features: FeatureSpace | None = None
    """Features of the past tasks; None if they have none to learn from."""
    task_features: Mapping[str, FeatureValue] | None = None
    """Features of the task that the surrogate is for, see `for_task`; None for any task."""
    general: Surrogate | None = None
    """The surrogate for any task, of one that `for_task` returned."""

    def __repr__(self) -> str:
        """The text that tells surrogates apart for a user, without the numbers."""
        facts: dict[str, Any] = {"direction": self.direction, "metric": self.metric, "path": self.path}
        facts["features"] = None if self.features is None else list(self.features.types)
        facts["task_features"] = self.task_features
        n_tasks = len(self.facts.get("tasks", ()))
        return summary(self, name=self.name, hyperparameters=list(self.space), n_tasks=n_tasks, **facts)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the method's name, the space, the learned parameters, the start design and the direction."""
        description = [self.name, to_json(self.space), list(self.start), self.direction]
        digest = hashlib.sha256(json.dumps(description).encode())
        for leaf in jax.tree.leaves(self.params):
            array = np.asarray(leaf)
            # A checkpoint holds numbers in JAX's precision, which may differ from that of the fit.
            precision = {"f": np.float32, "i": np.int32, "u": np.uint32}.get(array.dtype.kind, array.dtype)
            digest.update(array.astype(precision).tobytes())
        return digest.hexdigest()[:16]

    def require_direction(self, direction: str) -> None:
        """Checks that a study's direction is that of the past values. Raises `DataError`; the message says what to do.

        Args:
          direction: "minimize" or "maximize".
        """
        if self.direction in (None, direction):
            return
        metric = f" {self.metric}" if self.metric else ""
        rule = f"the surrogate learned to {self.direction}{metric}, and the study is to {direction}"
        remedy = f"pass direction={self.direction!r} (--direction {self.direction})"
        reverse = f"surrogate.with_direction({direction!r}) if what was better is better here too"
        raise DataError(f"{rule}: {remedy}, or {reverse}")

    def with_direction(self, direction: str) -> Surrogate:
        """Returns the surrogate for studies of a direction: configurations that were better must be better there too.

        For example, a surrogate that learned to maximise accuracies is useful for minimising error rates. Past values
        that were read in the wrong direction need a new `fit`.

        Args:
          direction: "minimize" or "maximize".

        Raises:
          ConfigError: for an unknown direction.
        """
        one_of("direction", direction, DIRECTIONS)
        metric = self.metric if direction == self.direction else None
        general = None if self.general is None else self.general.with_direction(direction)
        return replace(self, direction=direction, metric=metric, general=general)

    @property
    def uses_features(self) -> bool:
        """Whether the method relates tasks by features, and the past tasks have some."""
        return self.features is not None and isinstance(self.method, FeatureMethod)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features of the past tasks."""
        return () if self.features is None else tuple(self.features.types)

    def for_task(self, features: Mapping[str, Any]) -> Surrogate:
        """Returns the surrogate for a new task of known features, such as a larger model; `Optimizer` does so itself.

        It has no start design, as that is for any task: the method suggests from the first trial on.

        Args:
          features: values by name; None is an unknown one.

        Raises:
          DataError: for a name that the past tasks do not have, and a number that is text, infinite, or not positive on
            a log scale.

        Warns:
          DataWarning: if the features are not used, for features of the past tasks that are missing, and for a choice
            that no past task has. A line on standard error says which numbers lie outside of the range of the past.
        """
        general, values = self.general or self, plain_features(features)
        method = general.method
        if general.features is None or not isinstance(method, FeatureMethod):
            reason = "the past tasks have none" if general.features is None else f"{general.name} does not use any"
            warnings.warn(unused_features(values, reason), DataWarning, stacklevel=2)
            return general
        row = encode_task(general.features, values)
        with suggestion_runtime, jax.enable_x64(False):
            params = jax.tree.map(np.asarray, method.for_task(general.params, jax.device_put(row)))
        start = general.start if np.isnan(row).all() else ()
        return replace(general, params=params, start=start, task_features=values, general=general)

    @cached_property
    def scaling(self) -> Scaling | None:
        """How the best configuration moves with the features of the tasks; None if the surrogate uses none."""
        method, general = self.method, self.general or self
        if self.features is None or not isinstance(method, FeatureMethod):
            return None
        with suggestion_runtime, jax.enable_x64(False):
            learned = method.scaling_slopes(general.params)
        return None if learned is None else scaling_of(self.space, self.features, *map(np.asarray, learned))

    def figures(self) -> dict[str, Figure]:
        """Returns figures of what the surrogate learned by heading: "Scaling" if it uses features of tasks.

        A figure is matplotlib's: it shows itself in a notebook, and has ``savefig``.
        """
        from dre_jax.tuning.surrogates.scaling_figure import plot_scaling, scaling_panels

        if self.scaling is None or self.features is None or self.studies is None:
            return {}
        panels = scaling_panels(self.scaling, self.space, self.features, self.studies, self.task_features or {})
        return {"Scaling": plot_scaling(panels)} if panels else {}

    @classmethod
    @with_default_float_errors
    def fit(
        cls,
        past: Past,
        space: Space | None = None,
        *,
        method: str | Method = "recommended",
        seed: int = 0,
        settings: dict[str, Any] | None = None,
        n_start: int | None = None,
        quiet: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Surrogate:
        """Learns from past tasks. On a terminal, a line shows the progress.

        The terminal and ``facts["decided"]`` (`dre-jax info`) name the past studies that agree with no other one: a
        Gaussian process of each other study predicts them no better than without any study.

        Args:
          past: tasks of one search space, which is also the surrogate's.
          space: the expected search space of the past tasks; by default any.
          method: one that learns from past tasks: a name that `dre_jax.methods.find` knows, or the method itself.
          seed: the seed of the fit, which is reproducible.
          settings: of the method, by dotted field.
          n_start: maximum size of the start design, from 0; by default two, or four after a single past task.
          quiet: show no progress.
          progress: function that gets the progress instead of the terminal: a tuple of ``stage`` (a text), ``done`` and
            ``total`` (numbers of steps of this stage; the total is None if training stops by itself).

        Raises:
          DataError: without tasks, or for tasks of another space.
          ConfigError: for a method that is unknown, learns nothing, or learns anything but arrays of numbers, and
            for a size of the start design below 0.

        Warns:
          DataWarning: if past tasks or trials are left out, with counts and the first reasons; if past tasks have other
            hyperparameters than the search space, or lack features; for features that are not used; if `save` cannot
            store what the method learned.
        """
        fields = learn_surrogate(
            past, space, method, seed=seed, settings=settings, n_start=n_start, quiet=quiet, progress=progress
        )
        return cls(**fields)

    def sources(self, trials: Iterable[Evaluation], *, direction: str | None = None) -> Sources:
        """Returns which past studies helped: their weights, their agreement with trials, and the weight of the past.

        A past study and the trials need no configuration in common: a Gaussian process of each study predicts.

        Args:
          trials: configurations and values, such as `Optimizer.trials`; those without a value do not count.
          direction: of the values, "minimize" or "maximize"; by default the surrogate's.

        Raises:
          ConfigError: for an unknown direction, or none.
          DataError: for trials that lack hyperparameters of the surrogate.

        Example:
          >>> from dre_jax.tuning import Evaluated, Float, past_of
          >>> def study(sign):
          ...     return [Evaluated({"x": i / 19}, sign * abs(i / 19 - 0.3)) for i in range(20)]
          >>> studies = {"same": study(1), "reversed": study(-1)}
          >>> past = past_of(Space({"x": Float(0.0, 1.0)}), studies, direction="minimize")
          >>> surrogate = Surrogate.fit(past, method="gcp", settings={"prior.steps": 5})
          >>> [(source.name, source.helped) for source in surrogate.sources(study(1)[::3]).studies]
          [('same', True), ('reversed', False)]
        """
        return compare_sources(self, trials, self.direction if direction is None else direction)

    def past_in(
        self, space: Space, *, absent: Mapping[str, Any] | None = None, renamed: Mapping[str, str] | None = None
    ) -> Past:
        """Returns the rows of past studies that the surrogate keeps as past tasks of another search space.

        At most 50 studies and 100 rows of each are kept.

        Args:
          space: the search space.
          absent: values of hyperparameters that the surrogate does not know, see `past_of`.
          renamed: new names of hyperparameters by their old ones.

        Raises:
          DataError: if it keeps no studies, such as a surrogate of tables or a shipped one; and as `past_of`.
          ConfigError: as `past_of`.
        """
        if self.studies is None:
            raise DataError("the surrogate keeps no past studies: fit one to the past studies in this search space")
        past = self.studies.past_in(space, self.space, self.features, absent=absent, renamed=renamed)
        return replace(past, direction=self.direction, metric=self.metric, constrained=self.constrained)

    def for_space(
        self,
        space: Space,
        *,
        absent: Mapping[str, Any] | None = None,
        renamed: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> Surrogate:
        """Returns a surrogate for another search space, which learns anew from the rows that this one keeps.

        Args:
          space: the search space, which may have other hyperparameters, bounds or choices.
          absent: as in `past_in`, as is ``renamed``.
          renamed: new names of hyperparameters by their old ones.
          quiet: show no progress.

        Raises:
          ConfigError, DataError: as `past_in` and `fit`.

        Warns:
          DataWarning: as `fit`.

        Example:
          >>> from dre_jax.tuning import Evaluated, Float, past_of
          >>> tasks = {str(t): [Evaluated({"x": x / 9}, -abs(x / 9 - t / 3)) for x in range(10)] for t in range(3)}
          >>> past = past_of(Space({"x": Float(0.0, 1.0)}), tasks, direction="maximize")
          >>> surrogate = Surrogate.fit(past, method="gcp", settings={"prior.steps": 5})
          >>> list(surrogate.for_space(Space({"width": Float(0.0, 2.0)}), renamed={"x": "width"}).space)
          ['width']
        """
        past = self.past_in(space, absent=absent, renamed=renamed)
        return Surrogate.fit(past, method=self.method, seed=self.facts.get("seed", 0), quiet=quiet)

    def save(self, folder: str | os.PathLike[str]) -> Surrogate:
        """Writes the surrogate as a checkpoint; an existing one is replaced in one step.

        Args:
          folder: of the checkpoint; or one small file, if the name ends in ``.npz``.

        Returns:
          The surrogate with the folder as its `path`, which files of its studies then name.

        Raises:
          CheckpointError: if it cannot be written.
        """
        write_surrogate(folder, self.general or self, self.task_features)
        path = os.path.abspath(folder)
        return replace(self, path=path, general=None if self.general is None else replace(self.general, path=path))

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, space: Space | None = None) -> Surrogate:
        """Reads a surrogate that `save` or `dre-jax meta-train` wrote.

        Args:
          folder: the checkpoint's, or its file, ``NAME.npz``; of `meta-train`, a search space's.
          space: the search space to tune. A saved surrogate has its own space, as has a checkpoint of `meta-train` if
            the data have descriptors with ranges, and must be able to encode ``space``. Otherwise ``space`` is
            required, encoded as the tables are.

        Raises:
          CheckpointError: if there is no checkpoint, it is damaged, or its columns are not the space's.
          DataError: if its own space cannot encode ``space``; the message names the hyperparameters.
        """
        fields = read_surrogate(folder, space)
        task_features = fields.pop("task_features", None)
        surrogate = cls(**fields)
        return surrogate if task_features is None else surrogate.for_task(task_features)

    @classmethod
    def pretrained(cls, name: str, metric: str | None = None) -> Surrogate:
        """Returns the shipped surrogate of a popular model, with its default search space.

        Args:
          name: of the model: "svc", "random-forest", "xgboost", ...; `dre_jax.tuning.pretrained.FAMILIES` has all.
          metric: name of the score to tune, such as "accuracy", "neg_log_loss", "roc_auc", "r2" or "rmse". For another
            score of scikit-learn, such as "f1_macro", the surrogate of the nearest metric is used, and a line on
            standard error says so. By default the error rate, or R2 for models of regression alone, for studies of
            either direction.

        Raises:
          ConfigError: for an unknown model or metric; the message names the available ones.

        Example:
          >>> Surrogate.pretrained("svc", "accuracy").direction
          'maximize'
        """
        from dre_jax.tuning.pretrained.families import find_pretrained

        path, direction = find_pretrained(name, metric)
        return replace(cls.load(path), direction=direction, metric=metric)


def _read_past(source: str, space: Space) -> Past:
    return Surrogate.load(source).past_in(space)


READERS["surrogate"] = _read_past
