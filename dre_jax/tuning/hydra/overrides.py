"""Search spaces from Hydra's overrides: `lr=tag(log, interval(1e-5, 0.1))`, `depth=range(1, 9)`, `opt=sgd,adam`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dre_jax.errors import ConfigError
from dre_jax.space.parameters import Categorical, Float, Int
from dre_jax.space.scalars import Choice
from dre_jax.space.space import Params, Space

_LOG = "log"


class SweepOverrides(NamedTuple):
    """The overrides of a sweep.

    Example:
      >>> SweepOverrides(Space({"lr": Float(0.0, 1.0)}), ("seed=3",)).job({"lr": 0.5})
      ('lr=0.5', 'seed=3')
    """

    space: Space
    fixed: tuple[str, ...]
    """Overrides that all jobs have."""

    def job(self, params: Params) -> tuple[str, ...]:
        """Returns the overrides of a job."""
        return (*(f"{name}={value}" for name, value in params.items()), *self.fixed)


def parse_overrides(overrides: Sequence[str], params: Mapping[str, object] | None = None) -> SweepOverrides:
    """Returns the search space of overrides, and those that all jobs have.

    An interval has real numbers, and `int(interval(1, 8))` whole ones; the tag `log` is a log scale. A range has the
    values that Hydra's own sweeper takes, without its stop. A choice, also `a,b`, is one of its elements.

    Args:
      overrides: of the command line.
      params: further overrides by key, of `hydra.sweeper.params`; those of the command line take their place.

    Raises:
      ConfigError: for a sweep that is no search space, such as `glob(*)`, and if the overrides sweep nothing.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    lines = [*(f"{name}={value}" for name, value in (params or {}).items()), *overrides]
    by_key = {override.get_key_element(): override for override in OverridesParser.create().parse_overrides(lines)}
    space, fixed = dict[str, Any](), list[str]()
    for key, override in by_key.items():
        if not override.is_sweep_override():
            fixed.append(override.input_line or "")
            continue
        try:
            space[key] = _parameter(override)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from error
    if not space:
        rule = "a sweep needs an override with a search space, such as lr=tag(log, interval(1e-5, 0.1))"
        raise ConfigError(f"{rule}, but got {', '.join(lines) or 'none'}")
    return SweepOverrides(Space(space), tuple(fixed))


def _parameter(override: Any) -> Categorical | Float | Int:
    """Returns the hyperparameter of a sweep of Hydra."""
    from hydra.core.override_parser.types import Glob, IntervalSweep, RangeSweep

    sweep = override.value()
    if isinstance(sweep, Glob):
        raise ConfigError(f"a search space is a choice, a range or an interval, but got {override.get_value_string()}")
    if isinstance(sweep, IntervalSweep):
        low, high = sweep.start, sweep.end
        kind: Any = Int if isinstance(low, int) and isinstance(high, int) else Float
        return kind(low, high, log=_LOG in sweep.tags)
    if isinstance(sweep, RangeSweep) and not sweep.shuffle:
        values = list(sweep.range())
        if len(values) > 1 and values[0] < values[-1]:
            kind = Int if isinstance(values[0], int) else Float
            return kind(values[0], values[-1], step=sweep.step)
    return Categorical(tuple(override.sweep_iterator(_level)))


def _level(element: Any) -> Choice:
    """Returns an element of a choice: text, lists and mappings as in an override, with the quotes that they need."""
    from hydra.core.override_parser.types import Transformer

    return element if isinstance(element, (bool, int, float)) else Transformer.str(element)
