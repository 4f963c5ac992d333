"""The files, in HPO-B v3's layout, and PROVENANCE.md beside them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from .checks import SplitResults
from .evaluate import stream
from .spaces import Space

DESIGNS = 5
DESIGN_ROWS = 5
Results = dict[str, SplitResults]
"""By space, then split, then task."""


def write_gz(path: Path, content: Any) -> None:
    """The same bytes for the same content: no file name, no time stamp."""
    text = json.dumps(content, separators=(",", ":"))
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=9, mtime=0) as packed:
        packed.write(text.encode())


def tables(results: Results, split: str) -> dict[str, Any]:
    return {
        space: {
            task: {"X": result.rows, "y": [[value] for value in result.responses]}
            for task, result in splits[split].items()
        }
        for space, splits in results.items()
    }


def designs(results: Results) -> dict[str, Any]:
    """Five initial designs of five distinct rows for every validation and test task."""

    def of(space: str, task: str, count: int) -> dict[str, list[int]]:
        rng = stream(space, task, "designs")
        return {f"test{i}": rng.choice(count, DESIGN_ROWS, replace=False).tolist() for i in range(DESIGNS)}

    return {
        space: {
            task: of(space, task, len(result.rows))
            for split in ("validation", "test")
            for task, result in splits[split].items()
        }
        for space, splits in results.items()
    }


def write(folder: Path, spaces: list[Space], results: Results, provenance: str) -> int:
    """Writes all files; the sum of their sizes in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "validation", "test"):
        write_gz(folder / f"meta-{split}-dataset.json.gz", tables(results, split))
    write_gz(folder / "bo-initializations.json.gz", designs(results))
    descriptors = {space.name: space.descriptor() for space in spaces}
    (folder / "meta-dataset-descriptors.json").write_text(json.dumps(descriptors, indent=1) + "\n")
    (folder / "PROVENANCE.md").write_text(provenance)
    return sum(file.stat().st_size for file in folder.iterdir() if file.suffix in (".gz", ".json", ".md"))
