"""Tables of the pages that scripts write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    rule = ["---", *("---:" for _ in heads[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def mean_cell(values: Sequence[float] | np.ndarray, digits: int = 3) -> str:
    """The mean of f64[n], with the standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"
