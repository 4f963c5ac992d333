"""``dre-jax methods``: what there is."""

from __future__ import annotations


def methods() -> None:
    """List the methods by name."""
    from dre_jax.methods import METHODS

    rows = [("name", "transfer", "runs on", "needs", "what it is", "paper")]
    for entry in METHODS.values():
        needs = "core" if entry.extra is None else f"dre_jax[{entry.extra}]"
        transfer = "yes" if entry.transfer else "no"
        rows.append((entry.name, transfer, entry.library, needs, entry.summary, entry.paper))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())
