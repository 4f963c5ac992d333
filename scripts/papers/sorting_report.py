"""The inverse-mapping case study as a table, beside the thesis' numbers."""

from __future__ import annotations

import numpy as np
from markdown_tables import markdown_table

from papers.sorting import RANGES, Measured

# Epochs, list size -> accuracy in the order of RANGES: the thesis' table, means of five runs.
THESIS = {
    (1000, 3): (0.99, 0.27, 0.40),
    (100, 3): (0.77, 0.29, 0.11),
    (100, 30): (0.80, 0.79, 0.46),
    (100, 100): (0.99, 0.00, 0.39),
    (1000, 100): (1.00, 0.71, 0.48),
}
CASE_STUDY = ("ListMLE", "ListMLE, rate 1e-4", "ListMLE, free range")


def spread(values: np.ndarray) -> float:
    """Standard deviation over seeds; 0 for one seed."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def table(measured: list[Measured]) -> str:
    head = ["loss", "list size", "epochs", *RANGES, *(f"pairs {name}" for name in RANGES), "thesis"]
    rows = []
    for m in measured:
        accuracy = [f"{v.mean():.2f} ± {spread(v):.2f}" for v in m.accuracy.values()]
        pairs = [f"{v.mean():.3f}" for v in m.pairs.values()]
        thesis = THESIS.get((m.epochs, m.list_size)) if m.arm in CASE_STUDY else None
        quoted = " / ".join(f"{v:.2f}" for v in thesis) if thesis else "–"
        rows.append([m.arm, str(m.list_size), str(m.epochs), *accuracy, *pairs, quoted])
    return markdown_table(head, rows)
