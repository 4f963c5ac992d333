"""Speed of looking for one search space in a large file: ``python -m benchmarks.reading``."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from dre_jax.data.json_stream import iter_datasets


def main() -> None:
    """Prints how fast a space at the end of a file of 100 MB is found."""
    table = {"X": [[i / 7.0, 0.5, 0.25] for i in range(20_000)], "y": [[i / 3.0] for i in range(20_000)]}
    text = json.dumps(table)
    copies = 100_000_000 // len(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "meta-train-dataset.json"
        others = ", ".join(f'"{i}": {text}' for i in range(copies))
        path.write_text(f'{{"others": {{{others}}}, "wanted": {{"one": {{"X": [[1.0]], "y": [[1.0]]}}}}}}')
        size = path.stat().st_size
        begun = time.perf_counter()
        found = list(iter_datasets(path, "wanted"))
        seconds = time.perf_counter() - begun
    print(f"{len(found)} dataset found behind {size / 1e6:.0f} MB in {seconds:.2f} s: {size / 1e6 / seconds:.0f} MB/s")


if __name__ == "__main__":
    main()
