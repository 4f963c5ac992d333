"""The value of a trial in the output of its command."""

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from dre_jax.errors import ConfigError
from dre_jax.tuning.trials.trial import objective_value

VALUE = "value"
"""Key of the value in a JSON object if no metric is named."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_PLAIN = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_GROUPED_NUMBER = r"\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,}"  # one group alone may be a decimal comma
_NUMBER = rf"[+-]?(?:{_GROUPED_NUMBER}|{_PLAIN}|(?i:inf(?:inity)?|nan))"
# A number that is part of something else does not count: 19:05, 10/10, 0,35, 1.2.3, 12ms, 2024-01-02.
_END = r"(?![\w/*^]|[.,:][\w]|-\S|\+(?!/?-))"
_ONE_NUMBER = re.compile(rf"(?:\[\s*({_NUMBER})\s*\]|\(\s*({_NUMBER})\s*\)|({_NUMBER}){_END})")
_ALONE = re.compile(rf"(?:({_NUMBER})|[+-]?[\d.,]*\d[\d.,]*)\.?\s*%?")
_WORD = r"[^\W\d][\w./@-]*"
_NAMED_NUMBER = re.compile(
    rf"(?<![\w./@-])({_WORD}|{_WORD} +\d+)[\"']?\s*[:=]\s*(?=[\[(]?\s*(?:[+-]?\.?\d|[+-]?(?i:inf(?:inity)?|nan)\b))"
)
_WORDS_BEFORE = re.compile(rf"(?:(?<![\w./@-]){_WORD} +)+$")
_CLOCK = re.compile(r"\d+:\d\d|\d{4}-\d\d-\d\d")
_MAX_LENGTH = 80


class PrintedNames(NamedTuple):
    """Names of the numbers that a command prints."""

    metrics: Sequence[str] = ()
    """Of the values; without metrics, the output has a single value (see `read_value`)."""
    cost: str | None = None
    """Of the cost; None for no cost."""
    stderr: str | None = None
    """Of the standard error of the value; None for none."""

    @property
    def others(self) -> list[str]:
        """The names of numbers that are no values."""
        return [name for name in (self.cost, self.stderr) if name is not None]


ONE_VALUE = PrintedNames()
"""For a command that prints a single value, and no cost."""


class PrintedValue(NamedTuple):
    """What the output of a command says."""

    value: float | None
    """The value, which may be infinite or NaN; None if there is none."""
    line: str = ""
    """The line with the value."""
    problem: str = ""
    """Why there is no value, and what to do."""
    ambiguous: bool = False
    """Whether the output has a value that cannot be distinguished from others, or cannot be read."""


class _Entry(NamedTuple):
    """A number in the output, or text in the place of one."""

    name: str
    """Empty for a number alone."""
    value: float | None
    """None if the text is not one number."""
    line: str
    is_value: bool = False
    """Whether it is a number alone, or the `value` of a JSON object."""


def read_value(output: str, metric: str | None = None, others: Collection[str] = ()) -> PrintedValue:
    r"""Reads the value in the output of a command.

    With a metric, the value is the last `METRIC: number`, `METRIC=number`, or key of a JSON object. Without one, it is
    the number that stands alone on a line, or `value` in a JSON object, if nothing with a number follows it, or the
    only `name: number`. Anything else is ambiguous.

    Args:
      output: the output, or its last lines.
      metric: the name of the value.
      others: names of numbers that are not the value if no metric is named, such as a cost.

    Example:
      >>> read_value("epoch: 3\n0.93\nsaved to /tmp/a.pt\n").value
      0.93
      >>> read_value('{\n "loss": 0.25,\n "epoch": 3\n}', "loss")[:2]
      (0.25, '"loss": 0.25')
      >>> read_value("loss: 0.5\nepoch: 2").problem
      "its output has several values, in 'loss: 0.5' and 'epoch: 2'; choose one with --metric NAME (loss, epoch)"
      >>> read_value("loss: 0.5\nseconds: 12", others=["seconds"]).value
      0.5
    """
    text = _ESCAPES.sub("", output)
    return _read_unnamed(text, others) if metric is None else _read_named(text, metric)


def curve_pattern(text: str) -> re.Pattern[str]:
    r"""Returns the pattern of lines that report a step and a value: its two groups, or the groups `step` and `value`.

    Raises:
      ConfigError: for text that is not a regular expression with two groups.

    Example:
      >>> read_reports("step 3: loss 0.41\nsaved\n", curve_pattern(r"step (\d+): loss (\S+)"))
      [(3.0, 0.41)]
    """
    rule = r"a curve must be a regular expression with two groups, such as 'step (\d+): loss (\S+)'"
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigError(f"{rule}, but {text!r}: {error}") from error
    if pattern.groups != 2:
        raise ConfigError(f"{rule}, but {text!r} has {pattern.groups}")
    return pattern


def read_reports(output: str, pattern: re.Pattern[str]) -> list[tuple[float, float]]:
    """Returns the steps and values in the lines that match a pattern, where both are numbers."""
    reports: list[tuple[float, float]] = []
    for match in map(pattern.search, _ESCAPES.sub("", output).splitlines()):
        with contextlib.suppress(ValueError, TypeError):  # other text, or a group that is left out
            if match is not None:
                texts = match.groupdict()
                step, value = (texts["step"], texts["value"]) if texts.keys() >= {"step", "value"} else match.groups()
                reports.append((float(step), float(value)))
    return reports


def _read_named(text: str, metric: str) -> PrintedValue:
    pattern = re.compile(rf"(?<![\w./@-]){re.escape(metric)}[\"']?\s*[:=]\s*(?![:=])")
    entries: list[_Entry] = []
    for piece in _pieces(text):
        if isinstance(piece, dict):
            entries += _keys(piece, metric)
            continue
        line = piece.strip()
        for match in pattern.finditer(line):
            entries.append(_Entry(_words_before(line, match.start()) + metric, _number(line, match.end()), line))
    exact = [entry for entry in entries if entry.name == metric]
    names = list(dict.fromkeys(entry.name for entry in entries))
    if not exact and len(names) > 1:
        return _several(entries)
    if not entries:
        printed_names = list(dict.fromkeys(entry.name for entry in _entries(text) if entry.name))
        hint = f", but {', '.join(map(repr, printed_names[:5]))}" if printed_names else ""
        return PrintedValue(None, problem=f"it printed no number with the name {metric!r} (--metric){hint}")
    return _readable((exact or entries)[-1])


def _read_unnamed(text: str, other_names: Collection[str]) -> PrintedValue:
    entries = [entry for entry in _entries(text) if not any(_has_name(entry, name) for name in other_names)]
    if not entries:
        lines = text.strip().splitlines()
        last = f"; its last line is {_short(lines[-1])!r}" if lines else "; its output is empty"
        rule = "a number alone on a line, a JSON object with 'value', nor `name: number`"
        return PrintedValue(None, problem=f"it printed neither {rule}{last}")
    last_entry = entries[-1]
    if not last_entry.is_value and (
        len({entry.name for entry in entries if not entry.is_value}) > 1 or any(entry.is_value for entry in entries)
    ):
        return _several(entries)
    return _readable(last_entry)


def _has_name(entry: _Entry, name: str) -> bool:
    """Returns whether an entry has a name, with or without words before it."""
    return not entry.is_value and (entry.name == name or entry.name.endswith(f" {name}"))


def _readable(entry: _Entry) -> PrintedValue:
    if entry.value is not None:
        return PrintedValue(entry.value, _short(entry.line))
    rule = "print it as in `loss: 0.35`, or name another value with --metric NAME"
    problem = f"the value in {_short(entry.line)!r} is not one number; {rule}"
    return PrintedValue(None, problem=problem, ambiguous=True)


def _several(entries: Sequence[_Entry]) -> PrintedValue:
    last = entries[-1]
    other = next(entry for entry in reversed(entries) if (entry.name, entry.is_value) != (last.name, last.is_value))
    lines = dict.fromkeys((_short(other.line), _short(last.line)))
    names = ", ".join(dict.fromkeys(entry.name for entry in (other, last) if entry.name))
    lines_with_values = " and ".join(map(repr, lines))
    problem = f"its output has several values, in {lines_with_values}; choose one with --metric NAME ({names})"
    return PrintedValue(None, problem=problem, ambiguous=True)


def _entries(text: str) -> Iterator[_Entry]:
    """Yields candidates for the value if no metric is named."""
    for piece in _pieces(text):
        if isinstance(piece, dict):
            if VALUE in piece:
                yield _Entry(VALUE, _json_number(piece[VALUE]), _json_line(VALUE, piece[VALUE]), is_value=True)
                continue
            numbers = ((name, _json_number(value), value) for name, value in piece.items())
            yield from (_Entry(name, number, _json_line(name, v)) for name, number, v in numbers if number is not None)
            continue
        line = piece.strip()
        if alone := _ALONE.fullmatch(line):
            number = float(alone[1].replace(",", "")) if alone[1] else None
            yield _Entry("", number, line, is_value=True)
            continue
        for match in _NAMED_NUMBER.finditer(line):
            if not _CLOCK.match(line, match.end()):
                yield _Entry(_words_before(line, match.start()) + match[1], _number(line, match.end()), line)


def _pieces(text: str) -> Iterator[str | dict[str, Any]]:
    """Yields the lines of a text; a JSON object replaces its lines."""
    lines = text.splitlines(keepends=True)
    decoder = json.JSONDecoder()
    position = object_end = 0
    for line in lines:
        start, position = position, position + len(line)
        if start < object_end:
            continue
        if line.lstrip().startswith("{"):
            try:
                content, end = decoder.raw_decode(text, start + line.index("{"))
            except (ValueError, RecursionError):
                pass
            else:
                object_end = end
                yield content
                if end < position:
                    yield text[end:position]
                continue
        yield line


def _keys(content: dict[str, Any], metric: str, outer: str = "") -> Iterator[_Entry]:
    """Yields the values of a key in a JSON object and in the objects in it, whose names precede the key."""
    for key, value in content.items():
        name = f"{outer}{key}"
        if name == metric or key == metric:
            yield _Entry(name, _json_number(value), _json_line(name, value))
        elif isinstance(value, dict):
            yield from _keys(value, metric, f"{name} ")


def _words_before(line: str, end: int) -> str:
    """Returns the words before a name, such as `val ` in `val loss: 0.3`."""
    words = _WORDS_BEFORE.search(line[max(0, end - _MAX_LENGTH) : end])
    return words[0] if words else ""


def _json_line(name: str, value: Any) -> str:
    return f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"


def _json_number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return objective_value(value) if is_number else None


def _number(line: str, start: int) -> float | None:
    """Returns the number at a position of a line; None if no single number is there."""
    match = _ONE_NUMBER.match(line, start)
    return None if match is None else float(next(filter(None, match.groups())).replace(",", ""))


def _short(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
