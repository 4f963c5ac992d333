"""Ablations on validation tasks: what each choice is worth, with the spread over meta-training seeds.

    python scripts/ablate.py NAME [NAME ...] --data FOLDER [--data bundled] --out DIR
    python scripts/ablate.py all --data FOLDER --out DIR        # every choice, a few hours of 2 cores
    python scripts/ablate.py test --data FOLDER --out DIR       # what was chosen, on the test tasks

FOLDER is in HPO-B's layout; ``bundled`` stands for the data that ship. Every number is a mean over search spaces, so
that none counts for more than another. What is finished is kept in DIR: the same command goes on where it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from ablations.by_loss import BY_LOSS
from ablations.own import OWN
from ablations.studies import STUDIES as CHOICES
from ablations.studies import Study
from ablations.tables import markdown, page
from one_line import errors_in_one_line

from dre_jax.cli.compare import run
from dre_jax.data.files import make_folder, write_text
from dre_jax.errors import DataError
from dre_jax.experiment import BUNDLED, Job, collect, make_jobs
from dre_jax.report import Comparison, compare

STUDIES = CHOICES | BY_LOSS | OWN
OF_VALIDATION = [name for name, study in STUDIES.items() if study.split == "validation"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="+", choices=[*STUDIES, "all"])
    parser.add_argument("--data", action="append", help="a folder, or bundled; may be given again (default: bundled)")
    parser.add_argument("--out", type=Path, required=True, help="checkpoints, results and tables")
    parser.add_argument("--seeds", type=int, default=3, help="meta-trainings of each variant")
    parser.add_argument("--designs", default="test0,test1", help="initial designs")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--page", type=Path, help="where the tables go (default: OUT/ablations.md)")
    parser.add_argument("--title", default="Ablations", help="of that page")
    parser.add_argument("--table-only", action="store_true", help="make the tables of what is finished")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    make_folder(given.out)
    names = list(dict.fromkeys(one for name in given.name for one in (OF_VALIDATION if name == "all" else [name])))
    jobs = jobs_of(names, given.data or [BUNDLED], given.seeds, tuple(given.designs.split(",")), given.out)
    if not given.table_only:
        run(jobs, given.workers, "ablate", quiet=False)
    sections = {}
    for name in names:
        comparison = finished(name, jobs)
        if comparison is not None:
            sections[name] = markdown(name, STUDIES[name], comparison)
            print(sections[name], end="\n\n")
    write_text(given.page or given.out / "ablations.md", page(given.title, sections))


def jobs_of(names: Sequence[str], data: Sequence[str], seeds: int, designs: tuple[str, ...], out: Path) -> list[Job]:
    """The jobs of the studies: those with the same split and trials share their common variants."""
    found: list[Job] = []
    for (split, trials), alike in groupby(sorted((STUDIES[name] for name in names), key=_setting), _setting):
        methods = [method for study in alike for method in study.variants.values()]
        found += make_jobs(methods, data, designs=designs, out=out, split=split, trials=trials, seeds=range(seeds))
    return found


def _setting(study: Study) -> tuple[str, int]:
    return study.split, study.trials


def finished(name: str, jobs: Sequence[Job]) -> Comparison | None:
    """The study's runs that all its variants have; None if there are none."""
    study = STUDIES[name]
    own = [job for job in jobs if (job.split, job.trials) == _setting(study)]
    try:
        return compare({variant: collect(own, method, by_seed=True) for variant, method in study.variants.items()})
    except DataError as error:
        print(f"{name}: nothing to compare yet ({error})")
        return None


if __name__ == "__main__":
    with errors_in_one_line():
        main()
