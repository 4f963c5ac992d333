"""What `Surrogate.fit` does: a method learns from past tasks, while the past studies are compared with each other."""

from __future__ import annotations

import warnings
from typing import Any

import jax

from dre_jax.checks import check_counts, check_seed
from dre_jax.data import SearchSpace
from dre_jax.data.checks import show
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.methods import find
from dre_jax.methods.entries.entry import Entry
from dre_jax.methods.registry import entry_of, register_foreign
from dre_jax.methods.storage.provenance import provenance
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.progress import show_reports
from dre_jax.runtime.reports import ProgressCallback, report_progress, report_result
from dre_jax.runtime.threads import beside
from dre_jax.search.method import FeatureMethod, Method, decisions_of
from dre_jax.space.space import Space
from dre_jax.tuning.past.studies import PastStudies, keep_studies, studies_apart
from dre_jax.tuning.past.tasks import Past, describe_changes, describe_exclusions, start_design
from dre_jax.tuning.surrogates.new_task import unused_features
from dre_jax.tuning.surrogates.saved_surrogate import storable_params


def learn_surrogate(
    past: Past,
    space: Space | None,
    method: str | Method,
    *,
    seed: int,
    settings: dict[str, Any] | None,
    n_start: int | None,
    quiet: bool,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    """Returns the fields of a surrogate that has learned from past tasks; as `Surrogate.fit`, with its errors."""
    check_seed(seed)
    if n_start is not None:
        check_counts(0, n_start=n_start)
    _check_past(past, space)
    entry = find(method) if isinstance(method, str) else entry_of(method)
    if not entry.transfer or entry.default is None:
        raise _learns_nothing(entry)
    register_foreign(entry)
    learner = entry.make(settings)
    messages = [describe_exclusions(past), describe_changes(past)]
    if past.features is not None and not isinstance(learner, FeatureMethod):
        messages.append(unused_features(past.features.types, f"{entry.name} does not use any"))
    for message in messages:
        if message:
            warnings.warn(message, DataWarning, stacklevel=3)
    meta, key = past.search_space(), jax.random.key(seed)
    # In float32 as everywhere, whatever the process has set for a model of its own.
    with suggestion_runtime, jax.enable_x64(False), show_reports(quiet=quiet, callback=progress):
        n_tasks = f"{len(past.tasks)} past {'task' if len(past.tasks) == 1 else 'tasks'}"
        report_progress(f"{entry.name}: compiling, and learning from {n_tasks}")
        with beside(_keep_and_compare, meta, jax.random.fold_in(key, 2)) as comparison:
            params = jax.block_until_ready(learner.fit(meta, key))
            studies, apart = comparison.result()
        decisions = decisions_of(learner, params)
        if apart:
            decisions["past studies"] = f"{len(apart)} of {len(studies.names)} agree with no other: {', '.join(apart)}"
            report_result(f"past studies: {decisions['past studies']}")
    if not jax.tree.leaves(params):
        raise _learns_nothing(entry)
    return {
        "space": past.space,
        "name": entry.name,
        "method": learner,
        "start": start_design(past, n_start, seed),
        "facts": {**provenance(meta, key, is_fitted=True), "seed": seed, "decided": decisions},
        "params": storable_params(entry.name, learner, params, meta.n_columns),
        "direction": past.direction,
        "metric": past.metric,
        "studies": studies,
        "constrained": past.constrained,
        "features": past.features,
    }


def _check_past(past: Past, space: Space | None) -> None:
    """Raises `DataError` unless there are past tasks, of the space if one is given."""
    if not isinstance(past, Past):
        raise DataError(f"a surrogate learns from past tasks as past_of returns them, but got {show(past)}")
    if space is not None and dict(past.space) != dict(space):
        raise DataError(f"past tasks must be of the space given, but are of {past.space!r}")
    if not past.tasks:
        reason = f": {past.exclusions[0]}" if past.exclusions else ""
        raise DataError(f"a surrogate needs at least one past task, but got none{reason}")


def _learns_nothing(entry: Entry) -> ConfigError:
    return ConfigError(f"a surrogate's method must learn from past tasks, but {entry.name} does not")


def _keep_and_compare(meta: SearchSpace, key: jax.Array) -> tuple[PastStudies, list[str]]:
    """Returns the past studies, and the names of those that agree with no other one."""
    studies = keep_studies(meta, key)
    return studies, studies_apart(studies)
