"""Ablations on validation tasks: what each choice is worth, and what difference the comparison can see.

    python scripts/ablate.py NAME [NAME ...] --data FOLDER [--data bundled] --out DIR
    python scripts/ablate.py all --data FOLDER --out DIR        # every choice
    python scripts/ablate.py NAME --folds 5 --data FOLDER --out DIR    # cross-validation over all past tasks
    python scripts/ablate.py test --data FOLDER --out DIR       # what was chosen, on the test tasks

FOLDER is in HPO-B's layout; ``bundled`` stands for the data that ship. With ``--folds`` each fold of the training and
validation tasks together is held out once, as test tasks. What is finished is kept in DIR: rerun the command to resume.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from ablations import tables
from ablations.studies import STUDIES, Study
from data_variants import unfold, write_folds
from one_line import errors_in_one_line

from dre_jax.data.files import make_folder, write_text
from dre_jax.errors import ConfigError, DataError
from dre_jax.hpob.jobs import BUNDLED, Job, collect, make_jobs, run_jobs
from dre_jax.report import Comparison, compare

OF_VALIDATION = [name for name, study in STUDIES.items() if study.split == "validation"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="+", choices=[*STUDIES, "all"])
    parser.add_argument("--data", action="append", help="a folder, or bundled; may be given again (default: bundled)")
    parser.add_argument("--out", type=Path, required=True, help="checkpoints, results and tables")
    parser.add_argument("--space", action="append", help="a search space; may be given again (default: all)")
    parser.add_argument("--folds", type=int, help="how many; without them the validation tasks are optimised")
    parser.add_argument("--seeds", type=int, default=3, help="meta-trainings of each variant")
    parser.add_argument("--designs", help="initial designs (default: two, of folds all five)")
    parser.add_argument("--trials", type=int, help="of a run (default: the study's)")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--page", type=Path, help="where the tables go (default: OUT/ablations.md or folds.md)")
    parser.add_argument("--title", default="Ablations", help="of that page")
    parser.add_argument("--table-only", action="store_true", help="make the tables of what is finished")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    make_folder(args.out)
    names = list(dict.fromkeys(one for name in args.name for one in (OF_VALIDATION if name == "all" else [name])))
    studies = {name: replace(STUDIES[name], trials=args.trials or STUDIES[name].trials) for name in names}
    data = args.data or [BUNDLED]
    if args.folds is not None:
        if apart := [name for name in names if name not in OF_VALIDATION]:
            raise ConfigError(f"folds are of past tasks, but {', '.join(apart)} looks at the test tasks")
        studies = {name: replace(study, split="test") for name, study in studies.items()}
        data = [fold for one in data for fold in write_folds(one, args.out / "data", args.folds)]
    designs = args.designs or ("test0,test1" if args.folds is None else "test0,test1,test2,test3,test4")
    jobs = jobs_of(studies.values(), data, args.seeds, tuple(designs.split(",")), args.out, args.space)
    if not args.table_only:
        run_jobs(jobs, args.workers, "ablate")
    text = tell(args, studies, jobs)
    write_text(args.page or args.out / ("ablations.md" if args.folds is None else "folds.md"), text)


def jobs_of(
    studies: Iterable[Study],
    data: Sequence[str],
    seeds: int,
    designs: tuple[str, ...],
    out: Path,
    spaces: Sequence[str] | None = None,
) -> list[Job]:
    """The jobs of the studies: those with the same split and trials share their common variants."""
    found: list[Job] = []
    for (split, trials), alike in groupby(sorted(studies, key=_setting), _setting):
        methods = [method for study in alike for method in study.variants.values()]
        found += make_jobs(
            methods, data, designs=designs, out=out, spaces=spaces, split=split, trials=trials, seeds=range(seeds)
        )
    return found


def _setting(study: Study) -> tuple[str, int]:
    return study.split, study.trials


def tell(args: argparse.Namespace, studies: Mapping[str, Study], jobs: Sequence[Job]) -> str:
    """Prints the tables of what is finished; returns them as a page."""
    sections = {}
    for name, study in studies.items():
        comparison = finished(name, study, jobs)
        if comparison is not None:
            sections[name] = tables.markdown(name, study, comparison, study.split if args.folds is None else "past")
            print(sections[name], end="\n\n")
    return tables.page(args.title, sections, args.folds)


def finished(name: str, study: Study, jobs: Sequence[Job]) -> Comparison | None:
    """The study's runs that all its variants have; None if there are none."""
    own = [job for job in jobs if (job.split, job.trials) == _setting(study)]
    try:
        found = {variant: collect(own, method, by_seed=True) for variant, method in study.variants.items()}
        return compare({variant: unfold(results) for variant, results in found.items()})
    except DataError as error:
        print(f"{name}: nothing to compare yet ({error})")
        return None


if __name__ == "__main__":
    with errors_in_one_line():
        main()
