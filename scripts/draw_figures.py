"""Draws the pictures of the README and of the site into docs/figures, for light and for dark pages.

    python scripts/draw_figures.py [NAME ...]       # from stored results and from the tables of the pages
    python scripts/draw_figures.py --regret DIR     # stores what scripts/compare_methods.py left in DIR, then draws

Run it after a table of docs/results has changed; a test says which pictures are older than their numbers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from drawing import stored
from drawing.pictures import PICTURES
from one_line import errors_in_one_line

from dre_jax.data.files import write_json
from dre_jax.errors import ConfigError

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"pictures (default: all): {', '.join(PICTURES)}")
    parser.add_argument("--regret", type=Path, metavar="DIR", help=f"what `{stored.COMMAND}` wrote")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in PICTURES]
    if unknown:
        raise ConfigError(f"pictures are {', '.join(PICTURES)}, but got {', '.join(unknown)}")
    if args.regret:
        write_json(DOCS / "figures" / "regret.json", stored.regret_of(args.regret))
    for name in args.names or PICTURES:
        for path in PICTURES[name](DOCS, DOCS / "figures"):
            print(path)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
