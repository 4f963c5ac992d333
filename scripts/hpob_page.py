"""Write the page of published results on HPO-B: regret and rank of every method, pooled over runs.

python scripts/hpob_page.py --traces DIR --page docs/results/hpo-b.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from markdown_tables import markdown_table
from one_line import errors_in_one_line

from dre_jax.data import Results
from dre_jax.data.files import write_text
from dre_jax.report import compare
from dre_jax.report.published import PUBLISHED, read_published

AT = (5, 10, 25, 50, 100)
HEAD, TAIL = "<!-- tables: scripts/hpob_page.py -->\n", "<!-- end of the tables -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="folder of result files")
    parser.add_argument("--page", type=Path, required=True, help="page whose tables are replaced")
    args = parser.parse_args()
    text = args.page.read_text(encoding="utf-8")
    before, rest = text.split(HEAD)
    tables = "\n\n".join(sections(args.traces))
    write_text(args.page, f"{before}{HEAD}\n{tables}\n\n{TAIL}{rest.split(TAIL)[1]}")


def sections(traces: Path) -> Iterator[str]:
    """The tables, with headings."""
    discrete, continuous = (read_published(traces, protocol) for protocol in ("discrete", "continuous"))
    all_runs = max(count(results) for results in discrete.values())
    complete = {name: results for name, results in discrete.items() if count(results) == all_runs}
    yield section("Tables, all search spaces", complete)
    yield section("Tables, six search spaces", discrete)
    yield section("Continuous surrogates", continuous)


def count(results: Results) -> int:
    """How many runs there are."""
    return sum(1 for _ in results.runs())


def section(title: str, results: Mapping[str, Results]) -> str:
    """A table of the runs that all methods have, the least regret after 50 trials first."""
    comparison = compare(results)
    regret, error, rank = comparison.average_regret(), comparison.standard_error(), comparison.average_rank()
    heads = ["method", "past", *(f"regret at {t}" for t in AT), *(f"rank at {t}" for t in AT), "paper and run"]
    rows = [
        [
            f"`{comparison.methods[i]}`",
            "yes" if PUBLISHED[comparison.methods[i]].transfer else "no",
            *(f"{regret[i, t]:.4f} ± {error[i, t]:.4f}" for t in AT),
            *(f"{rank[i, t]:.2f}" for t in AT),
            PUBLISHED[comparison.methods[i]].paper,
        ]
        for i in np.argsort(regret[:, 50], kind="stable")
    ]
    facts = ", ".join(f"{number} {word}" for number, word in comparison.counts)
    return f"## {title}\n\n{facts}.\n\n{markdown_table(heads, rows)}"


if __name__ == "__main__":
    with errors_in_one_line():
        main()
