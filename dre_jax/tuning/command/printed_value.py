"""The value of a trial in the output of its command."""

from __future__ import annotations

import json
import math
import re

METRIC = "value"
_NUMBER = re.compile(
    r"(?:^|[\s=:,(\[])([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?inf(?:inity)?|nan)[)\]]?$", re.I
)


def read_value(printed: str, metric: str = METRIC) -> float | None:
    r"""Returns the value in the last line that ends in a number, or is a JSON object with a number for the metric.

    Args:
      printed: the output, or its last lines.
      metric: the key in a JSON object; ignored if the object has a single entry.

    Returns:
      The value, which may be infinite or NaN; None if there is no value.

    Example:
      >>> read_value("epoch 1: 0.4\naccuracy = 0.93\nsaved to /tmp/a.pt\n")
      0.93
      >>> read_value('{"loss": 0.25, "epoch": 3}', "loss"), read_value("0.1\nloss: nan"), read_value("done in 3 s")
      (0.25, nan, None)
    """
    for line in reversed(printed.splitlines()):
        text = line.strip()
        value = _of_json(text, metric) if text.startswith("{") else _at_the_end(text)
        if value is not None:
            return value
    return None


def _at_the_end(line: str) -> float | None:
    match = _NUMBER.search(line)
    return None if match is None else float(match[1])


def _of_json(line: str, metric: str) -> float | None:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    value = content.get(metric, next(iter(content.values())) if len(content) == 1 else None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
