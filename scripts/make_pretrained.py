"""Make the surrogates that ship with `dre_jax.tuning.pretrained`, from evaluations of real models.

    python scripts/make_pretrained.py --tables DIR                 # half an hour of one core: DIR/FAMILY/TASK.json
    python scripts/make_pretrained.py --tables DIR --store FOLDER  # evaluates what is missing, and fits the surrogates

Needs scikit-learn, xgboost and lightgbm, and no network. The tasks are those of the bundled data, the data sets that
scikit-learn has, and problems from its generators. Every other task has standardised columns, and targets have three
scales, two of them with an offset, because models meet all of these. A task that is in DIR is not evaluated again.
"""

import argparse
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from bundled.pretrained import evaluate, fit, table_tasks
from command_line import errors_in_one_line
from threadpoolctl import threadpool_limits

from dre_jax.data.files import read_json, write_json
from dre_jax.tuning.pretrained import FAMILIES, Family

LICENCE = "Apache-2.0; evaluations on data sets that scikit-learn carries (BSD-3-Clause) and on its generators"
COMMAND = "python scripts/make_pretrained.py --tables DIR --store dre_jax/tuning/pretrained/surrogates"


def make_tables(folder: Path, family: Family) -> None:
    for name, problem in table_tasks(family).items():
        path = folder / family.name / f"{name}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            table = evaluate(family, problem)
            write_json(path, table)
            print(f"{family.name} {name}: default {table['default']}", flush=True)


def store(tables: Path, folder: Path, family: Family) -> None:
    package = import_module(str(family.classifier or family.regressor).partition(".")[0])
    for metric in family.metrics:
        surrogate = fit(tables, family, metric)
        tasks = surrogate.facts["tasks"]
        origin = {
            "rows": sum(len(read_json(tables / family.name / f"{task}.json")["rows"]) for task in tasks),
            "evaluated with": f"{package.__name__} {package.__version__}".replace("sklearn", "scikit-learn"),
            "licence": LICENCE,
            "command": COMMAND,
        }
        path = folder / f"{family.name}.{metric}.npz"
        replace(surrogate, facts={**surrogate.facts, "origin": origin}, studies=None).save(path)
        print(f"{path.name}: {len(tasks)} tasks, {path.stat().st_size / 1000:.0f} kB, {surrogate.start}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True, help="folder of the evaluations")
    parser.add_argument("--store", type=Path, help="folder of the surrogates")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="may be given again (default: all)")
    args = parser.parse_args()
    for name in args.family or FAMILIES:
        make_tables(args.tables, FAMILIES[name])
        if args.store is not None:
            args.store.mkdir(parents=True, exist_ok=True)
            store(args.tables, args.store, FAMILIES[name])


if __name__ == "__main__":
    with errors_in_one_line(), threadpool_limits(1):
        main()
