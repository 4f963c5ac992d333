"""Whether a surrogate can encode the configurations of another search space."""

from __future__ import annotations

from dre_jax.errors import DataError
from dre_jax.tuning.space.space import Space


def require_compatible_spaces(space: Space, surrogate_space: Space, *, ignore_extra: bool) -> None:
    """Checks that a surrogate's space encodes the configurations of a space.

    Args:
      space: the space that is searched.
      surrogate_space: the space that encodes it.
      ignore_extra: accept hyperparameters that the surrogate does not know.

    Raises:
      DataError: if the spaces differ; the message names the hyperparameters.
    """
    mismatches = surrogate_space.mismatches(space)
    extra = [name for name in space if name not in surrogate_space]
    if ignore_extra:
        mismatches = [text for text in mismatches if text not in [f"{name} (only here)" for name in extra]]
        if len(extra) == len(space):
            mismatches.append("no hyperparameter in common")
    if mismatches:
        remedy = "surrogate.for_space(space) learns anew from the past studies that it keeps"
        command = "dre-jax meta-train --from-surrogate on the command line"
        differ = f"the surrogate must know the space, but they differ: {', '.join(mismatches)}"
        raise DataError(f"{differ}; {remedy} ({command})")
