"""The headline rows on every machine that they were measured on, kept in `machines.json`: a ratio is one machine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.suite.table import markdown, ratio, seconds
from dre_jax.data.files import read_json, write_json

FILE = Path(__file__).with_name("machines.json")
ROWS = ("trial-105-published", "trial-30-published", "trial-10-published", "meta-train-step-published", "trial-105")


def record(found: Mapping[str, Any]) -> None:
    """Adds what `python -m benchmarks --out` wrote, in place of what the same machine has there."""
    environment = found["environment"]
    kept = [one for one in read_json(FILE) if (one["machine"], one["gflops"]) != _identity(environment)]
    rows = {row["name"]: row for row in found["rows"]}
    names = ("ours_s", "ratio_eager", "ratio_best", "fraction")
    shown = {name: {key: rows[name][key] for key in names} for name in ROWS if name in rows}
    machine, gflops = _identity(environment)
    write_json(FILE, [*kept, {"machine": machine, "gflops": gflops, "rows": shown}], indent=1)


def _identity(environment: Mapping[str, Any]) -> tuple[str, int]:
    return f"{environment['processor']}, {environment['cores']} cores", round(environment["matrix_flops_per_s"] / 1e9)


def spread(machines: Sequence[Mapping[str, Any]]) -> str:
    """A row a figure and machine.

    Example:
      >>> row = {"ours_s": 0.1, "ratio_eager": 50.0, "ratio_best": None, "fraction": 0.5}
      >>> print(spread([{"machine": "one", "gflops": 230, "rows": {"trial-105": row}}]))
      | row | machine | matrix product | ours | x eager | x best | reached |
      | --- | ---: | ---: | ---: | ---: | ---: | ---: |
      | trial-105 | one | 230 GFLOP/s | 100 ms | 50.0 | - | 50% |
    """
    lines = [["row", "machine", "matrix product", "ours", "x eager", "x best", "reached"]]
    for name in ROWS:
        for one in machines:
            if (row := one["rows"].get(name)) is not None:
                cells = [name, one["machine"], "-" if one["gflops"] is None else f"{one['gflops']} GFLOP/s"]
                cells += [seconds(row["ours_s"]), ratio(row["ratio_eager"]), ratio(row["ratio_best"])]
                cells += ["-" if row["fraction"] is None else f"{row['fraction']:.0%}"]
                lines.append(cells)
    return markdown(lines)


def span(machines: Sequence[Mapping[str, Any]], peer: str) -> str:
    """The lowest and the highest ratio of the published algorithm over all its rows and machines, in words.

    Example:
      >>> rows = {"trial-10-published": {"ratio_eager": 152.2}, "trial-105-published": {"ratio_eager": 31.0}}
      >>> span([{"rows": rows}], "eager")
      '31 to 152'
    """
    published = [row for one in machines for name, row in one["rows"].items() if name.endswith("-published")]
    ratios = [row[f"ratio_{peer}"] for row in published if row[f"ratio_{peer}"] is not None]
    return f"{min(ratios):.0f} to {max(ratios):.0f}"


def summary(machines: Sequence[Mapping[str, Any]]) -> str:
    """From the lowest to the highest ratio of the published algorithm, in words."""
    found = []
    for name in ROWS:
        rows = [one["rows"][name] for one in machines if name in one["rows"]]
        for peer in ("eager", "best"):
            ratios = sorted(row[f"ratio_{peer}"] for row in rows if row[f"ratio_{peer}"] is not None)
            if ratios:
                most = f"{ratio(ratios[0])} to {ratio(ratios[-1])}" if len(ratios) > 1 else ratio(ratios[0])
                found.append(f"- `{name}`, x {peer}: {most} ({len(ratios)} machines)")
    return "\n".join(found)
