"""Hyperparameters: the values that they take, and when they are active."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from dre_jax.errors import ConfigError, DataWarning
from dre_jax.space import scalars
from dre_jax.space.conditions import Conditions, as_mapping, conditions_of

_MOST_STEPS = 1e9
_MOST_ITEMS = 9
"""Of a permutation: it has one coordinate, and single precision tells 9! coordinates apart."""


@dataclass(frozen=True, repr=False)
class _Parameter:
    """A hyperparameter, which shows the fields that are set."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.set_fields.items())})"

    @property
    def set_fields(self) -> dict[str, Any]:
        """The fields that do not have their default values."""
        values = {attribute.name: (getattr(self, attribute.name), attribute.default) for attribute in fields(self)}
        return {name: value for name, (value, unset) in values.items() if value not in (unset, ())}

    @property
    def alternatives(self) -> tuple[Conditions, ...]:
        """Alternative conditions, one of which must hold for the hyperparameter to be active; empty if it always is."""
        when: Any = self.when  # type: ignore[attr-defined]
        return when if not when or not isinstance(when[0][0], str) else (when,)

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the hyperparameters in the conditions."""
        return tuple(dict.fromkeys(name for alternative in self.alternatives for name, _ in alternative))

    @property
    def has_default(self) -> bool:
        """Whether there is a default value."""
        return any(attribute.name == "default" and self.default is not attribute.default for attribute in fields(self))  # type: ignore[attr-defined]


@dataclass(frozen=True, repr=False)
class Float(_Parameter):
    """A real number in [low, high].

    Args:
      low: lower bound.
      high: upper bound; may equal the lower one.
      log: whether its logarithm is searched evenly; low must be above 0.
      step: distance of the values from `low` on; None for all real numbers. With ``log``, numbers that are even on the
        log scale are rounded to these values.
      when: other hyperparameters' values for which this one is active: `{"kernel": ["rbf", "poly"]}`, or an `Interval`
        of a number. With a list of such mappings, one must hold.
      likely: range within the bounds where good values are likely, `(a, b)`; see `dre_jax.tuning.suggestion.beliefs`.
      default: value of the first configuration that is evaluated; None for none.

    Raises:
      ConfigError: for bounds that are upside down or not finite, a log bound or a step that is not positive, or a
        likely range or default outside of the range.

    Warns:
      DataWarning: if the range is not a multiple of the step; the upper bound is then the last value.

    Example:
      >>> Float(1e-3, 1e3, log=True, likely=(0.1, 10.0), default=1.0)
      Float(low=0.001, high=1000.0, log=True, likely=(0.1, 10.0), default=1.0)
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    when: Any = field(default=None, kw_only=True)
    likely: Any = field(default=None, kw_only=True)
    default: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        scalars.make_fields_plain(self)
        _check_bounds(self, float)
        if self.step is not None and not (scalars.is_finite(self.step) and self.step > 0):
            raise ConfigError(f"step must be a positive number, but got {self.step!r}")
        if self.step is not None and not (self.high - self.low) / self.step < _MOST_STEPS:
            bounds = f"low={self.low!r}, high={self.high!r}, step={self.step!r}"
            raise ConfigError(f"a range must have fewer than {_MOST_STEPS:.0e} steps, but got {bounds}")
        _normalise(self, float)


@dataclass(frozen=True, repr=False)
class Int(_Parameter):
    """A whole number in [low, high].

    Args:
      low: lower bound.
      high: upper bound; may equal the lower one.
      log: whether its logarithm is searched evenly; low must be at least 1.
      step: distance of the values from `low` on.
      when, likely, default: as for `Float`.

    Raises:
      ConfigError: as `Float`, and for numbers that are not whole.

    Warns:
      DataWarning: as `Float`.

    Example:
      >>> Int(1, 5).high
      5
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int = field(default=1, kw_only=True)
    when: Any = field(default=None, kw_only=True)
    likely: Any = field(default=None, kw_only=True)
    default: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        scalars.make_fields_plain(self)
        _check_bounds(self, int)
        if not scalars.is_whole(self.step) or self.step < 1:
            raise ConfigError(f"the step of a whole number must be a whole number of at least 1, but got {self.step!r}")
        if self.high - self.low >= 2**53 or max(abs(self.low), abs(self.high)) > 2**53:
            bounds = f"{self.low!r} to {self.high!r}"
            raise ConfigError(f"a whole number must have fewer than 2**53 values, within 2**53 of 0, but got {bounds}")
        _normalise(self, int)


@dataclass(frozen=True, repr=False)
class Categorical(_Parameter):
    """One of several values.

    Args:
      choices: text, finite numbers, true, false or None; different ones. May be an array.
      ordered: whether their order means something (small, medium, large): one column in place of one a level.
      when: as for `Float`.
      likely: a choice or several that are likely to be good; None for no belief.
      default: choice of the first configuration that is evaluated; `...` for none, as None may be a choice.

    Raises:
      ConfigError: without choices, or for a choice that occurs twice or has another type; for a likely or default value
        that is not a choice.

    Example:
      >>> Categorical(["rbf", "poly"]).choices
      ('rbf', 'poly')
    """

    choices: tuple[scalars.Choice, ...]
    ordered: bool = field(default=False, kw_only=True)
    when: Any = field(default=None, kw_only=True)
    likely: Any = field(default=None, kw_only=True)
    default: Any = field(default=..., kw_only=True)

    def __post_init__(self) -> None:
        scalars.make_fields_plain(self)
        choices = scalars.to_list(self.choices)
        if isinstance(choices, str) or not isinstance(choices, Sequence):
            raise ConfigError(f"choices must be a list, but got {self.choices!r}")
        object.__setattr__(self, "choices", tuple(map(scalars.plain_value, choices)))
        if not self.choices:
            raise ConfigError("a categorical hyperparameter needs at least one choice, but got none")
        for choice in self.choices:
            if not scalars.is_choice(choice):
                raise ConfigError(f"a choice must be text, a finite number, true, false or None, but got {choice!r}")
        if not isinstance(self.ordered, bool):
            raise ConfigError(f"ordered must be true or false, but got {self.ordered!r}")
        if len(set(scalars.levels_of(self.choices))) < len(self.choices):
            raise ConfigError(f"choices must differ, but got {list(self.choices)!r}")
        object.__setattr__(self, "when", conditions_of(as_mapping(self.when)))
        if self.likely is not None:
            likely = scalars.to_list(self.likely)
            likely = likely if isinstance(likely, (list, tuple)) else [likely]
            object.__setattr__(self, "likely", tuple(self._choice("likely", value) for value in likely))
            if not self.likely:
                raise ConfigError("likely must name at least one choice, but got none")
        if self.default is not ...:
            object.__setattr__(self, "default", self._choice("default", self.default))

    def _choice(self, field: str, value: Any) -> scalars.Choice:
        try:
            return self.choices[self.index(scalars.plain_value(value))]
        except (ValueError, TypeError):
            raise ConfigError(f"{field} must be one of {list(self.choices)!r}, but got {value!r}") from None

    def index(self, value: object) -> int:
        """Returns the index of a choice. Raises `ValueError` if the value is not a choice."""
        # True and 1 are equal but different choices; 1.0 stands for 1 if 1.0 is not a choice.
        for i, choice in enumerate(self.choices):
            if type(choice) is type(value) and choice == value:
                return i
        for i, choice in enumerate(self.choices):
            if isinstance(choice, str) == isinstance(value, str) and choice == value:
                return i
        raise ValueError(value)


def Bool(*, when: Any = None, likely: Any = None, default: Any = ...) -> Categorical:
    """False or true; arguments as in `Categorical`.

    Example:
      >>> Bool().choices
      (False, True)
    """
    return Categorical((False, True), ordered=True, when=when, likely=likely, default=default)


@dataclass(frozen=True, repr=False)
class Permutation(_Parameter):
    """An order of items, as a tuple: the steps of a pipeline, the stops of a tour.

    A method gets a column for each pair of items, which is 1 where the first one precedes the second one. A Gaussian
    process with one length scale then has the Mallows kernel (Jiao and Vert 2015, Deshwal et al. 2022), which falls
    with the number of pairs in another order.

    Args:
      items: 2 to 9 texts, finite numbers, true, false or None; different ones. May be an array.
      when: as for `Float`.
      default: order of the first configuration that is evaluated; None for none.

    Raises:
      ConfigError: for fewer or more items, an item that occurs twice or has another type, or a default of other items.

    Example:
      >>> steps = Permutation(["scale", "impute", "select"])
      >>> steps.size, steps.at(1), steps.index(("scale", "select", "impute"))
      (6, ('scale', 'select', 'impute'), 1)
    """

    items: Any
    when: Any = field(default=None, kw_only=True)
    default: Any = field(default=None, kw_only=True)
    likely: ClassVar[None] = None

    def __post_init__(self) -> None:
        items = scalars.to_list(self.items)
        is_list = isinstance(items, Sequence) and not isinstance(items, str)
        if not is_list or not 2 <= len(items) <= _MOST_ITEMS:
            raise ConfigError(f"a permutation must be of 2 to {_MOST_ITEMS} items in a list, but got {self.items!r}")
        object.__setattr__(self, "items", tuple(map(scalars.plain_value, items)))
        for item in self.items:
            if not scalars.is_choice(item):
                raise ConfigError(f"an item must be text, a finite number, true, false or None, but got {item!r}")
        if len(set(scalars.levels_of(self.items))) < len(self.items):
            raise ConfigError(f"items must differ, but got {list(self.items)!r}")
        object.__setattr__(self, "when", conditions_of(as_mapping(self.when)))
        if self.default is not None:
            try:
                object.__setattr__(self, "default", self.at(self.index(self.default)))
            except ValueError:
                raise ConfigError(
                    f"default must be an order of {list(self.items)!r}, but got {self.default!r}"
                ) from None

    @property
    def size(self) -> int:
        """Number of orders."""
        return math.factorial(len(self.items))

    def index(self, order: object) -> int:
        """Returns the position of an order among all, sorted by the positions of items in `items`.

        Raises `ValueError` if it is not an order of the items.
        """
        order = scalars.to_list(order)
        if not isinstance(order, (list, tuple)) or len(order) != len(self.items):
            raise ValueError(order)
        remaining, index = list(scalars.levels_of(self.items)), 0
        texts = dict(zip(map(_typed, self.items), remaining, strict=True))
        for item in order:
            try:
                position = remaining.index(texts[_typed(scalars.plain_value(item))])
            except (KeyError, TypeError):
                raise ValueError(order) from None
            index = index * len(remaining) + position
            del remaining[position]
        return index

    def at(self, index: int) -> tuple[scalars.Choice, ...]:
        """Returns the order at a position; see `index`."""
        positions = []
        for n in range(1, len(self.items) + 1):
            index, position = divmod(index, n)
            positions.append(position)
        remaining = list(self.items)
        return tuple(remaining.pop(position) for position in reversed(positions))


def _typed(item: Any) -> tuple[type, Any]:
    """Returns an item that differs from all others: 1, 1.0 and True are equal."""
    return type(item), item


Parameter = Float | Int | Categorical | Permutation


def _check_bounds(parameter: Float | Int, kind: type) -> None:
    low, high = parameter.low, parameter.high
    bounds = f"low={low!r}, high={high!r}"
    if not all(map(scalars.is_finite, (low, high))):
        raise ConfigError(f"bounds must be finite numbers, but got {bounds}")
    if kind is int and not (scalars.is_whole(low) and scalars.is_whole(high)):
        raise ConfigError(f"bounds of a whole number must be whole, but got {bounds}")
    if low > high:
        raise ConfigError(f"low <= high must hold, but got {bounds}")
    if not math.isfinite(float(high) - float(low)):
        raise ConfigError(f"high - low must be finite, but got {bounds}")
    if not isinstance(parameter.log, bool):
        raise ConfigError(f"log must be true or false, but got {parameter.log!r}")
    if parameter.log and low <= 0:
        raise ConfigError(f"low > 0 must hold on a log scale, but got {bounds}")


def _normalise(parameter: Float | Int, kind: type) -> None:
    """Converts the bounds to the declared type, and the upper bound to the last step."""
    low, high, step = parameter.low, parameter.high, parameter.step
    if step is not None:
        # 0.3 is three steps of 0.1 from 0, though their quotient is less than 3.
        steps = (high - low) // step if kind is int else int((high - low) / step * (1 + 1e-12))
        last = low + steps * step if kind is int else scalars.value_at_step(float(low), float(step), int(steps))
        if high - last > 1e-6 * step:
            rule = "the range of a hyperparameter should be a multiple of its step"
            message = f"{rule}, but got low={low!r}, high={high!r}, step={step!r}: the upper bound is {last!r}"
            warnings.warn(message, DataWarning, stacklevel=4)
        high = min(last, high)
        object.__setattr__(parameter, "step", kind(step))
    object.__setattr__(parameter, "low", kind(low))
    object.__setattr__(parameter, "high", kind(high))
    object.__setattr__(parameter, "when", conditions_of(as_mapping(parameter.when)))
    if parameter.likely is not None:
        likely = scalars.to_list(parameter.likely)
        likely = tuple(map(scalars.plain_value, likely)) if isinstance(likely, (list, tuple)) else ()
        if len(likely) != 2 or not all(_takes(parameter, value) for value in likely) or likely[0] > likely[1]:
            rule = f"likely must be two {_noun(parameter)}s in order"
            raise ConfigError(f"{rule}, in [{parameter.low!r}, {parameter.high!r}], but got {parameter.likely!r}")
        object.__setattr__(parameter, "likely", tuple(map(kind, likely)))
    if parameter.default is not None:
        if not _takes(parameter, parameter.default) or not _is_at_step(parameter, parameter.default):
            rule = f"default must be a {_noun(parameter)} in [{parameter.low!r}, {parameter.high!r}]"
            raise ConfigError(f"{rule}{steps_in_words(parameter)}, but got {parameter.default!r}")
        object.__setattr__(parameter, "default", kind(parameter.default))


def steps_in_words(parameter: Float | Int) -> str:
    """Returns the steps of a number as text for errors; empty if every number between the bounds is a value."""
    has_steps = parameter.step not in (None, 1) or (isinstance(parameter, Float) and parameter.step is not None)
    return f" and steps of {parameter.step!r} from the lower bound" if has_steps else ""


def _noun(parameter: Float | Int) -> str:
    return "whole number" if isinstance(parameter, Int) else "number"


def _takes(parameter: Float | Int, value: Any) -> bool:
    """Returns whether a value is within the bounds, and whole if it has to be."""
    is_number = scalars.is_whole(value) if isinstance(parameter, Int) else scalars.is_finite(value)
    return is_number and bool(parameter.low <= value <= parameter.high)


def _is_at_step(parameter: Float | Int, value: float) -> bool:
    steps = 0.0 if parameter.step is None else (value - parameter.low) / parameter.step
    return abs(steps - round(steps)) < 1e-6
