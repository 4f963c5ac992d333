"""The library against the PyTorch reference on real tasks: the same regret after a meta-training of equal length?

    python -m benchmarks.parity --data DIR --space svm --space rbv2-xgboost --out FILE.json

Both meta-train the paper's ensemble, one list a step, and optimise the same tasks from the same initial designs. Every
design goes with a meta-training of its own, so that luck in training is part of the noise; ``--repeats 2`` does all of
it again with other seeds. Variants:

    jax            the library
    torch          the PyTorch reference with the library's decisions (benchmarks.torch_reference, LIBRARY)
    torch-in-jax   PyTorch's weights in the library's loop
    jax-in-torch   the library's weights in PyTorch's loop
    reference      the PyTorch reference with the published code's decisions (REFERENCE)

Weights and traces are kept in a folder beside FILE: the same command goes on where it was. ``--summary`` counts what
is there; ``dre-jax report`` makes a page of it. Everything on one core; set JAX_NUM_CPU_DEVICES=1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks.torch_reference import LIBRARY, REFERENCE, Decisions, meta_train, tensors
from benchmarks.torch_search import optimise
from benchmarks.torch_weights import from_torch, to_torch
from dre_jax import DRE, FineTuneConfig, MetaTrainConfig
from dre_jax.data import Results, SearchSpace, add_trace, load_space, read_results, write_results
from dre_jax.data.files import atomic_writer, make_folder, write_json
from dre_jax.methods.checkpoints.provenance import versions
from dre_jax.methods.dre.ensemble import EnsembleParams, init
from dre_jax.methods.dre.model_config import preset
from dre_jax.methods.dre.trainer import meta_train as library_meta_train
from dre_jax.methods.dre.training_config import PAPER_LOSS
from dre_jax.report import Comparison, compare
from dre_jax.report.statistics import Unit, significance
from dre_jax.runtime.setup import prepare
from dre_jax.search.acquisition import AcquisitionConfig
from dre_jax.search.batch import run_id, run_tasks

MODEL = preset("paper")
# Variant -> who meta-trains, who searches, and PyTorch's decisions, in the order in which they are run.
VARIANTS: dict[str, tuple[str, str, Decisions]] = {
    "jax": ("jax", "jax", LIBRARY),
    "torch": ("torch", "torch", LIBRARY),
    "torch-in-jax": ("torch", "jax", LIBRARY),
    "reference": ("reference", "torch", REFERENCE),
    "jax-in-torch": ("jax", "torch", LIBRARY),
}
# Everything that differs, then the search alone, the training alone, and the decisions alone.
PAIRS = (
    ("torch", "jax"),
    ("torch-in-jax", "torch"),
    ("jax-in-torch", "jax"),
    ("torch-in-jax", "jax"),
    ("jax-in-torch", "torch"),
    ("reference", "torch"),
    ("reference", "jax"),
)
AT = (1, 5, 10, 15)
FACTS = ("split", "steps", "epochs", "learning_rate", "trials")  # what a result depends on, apart from its runs
Given = argparse.Namespace


def weights(given: Given, space: SearchSpace, who: str, draw: str, folder: Path) -> EnsembleParams:
    """Meta-trained weights, from the folder where they are there."""
    path = folder / f"weights-{who}-{space.name}-{draw}.npz"
    if not path.exists():
        begun, seed = time.perf_counter(), run_id(draw)
        if who == "jax":
            config = MetaTrainConfig(steps=given.steps, evaluate_every=given.steps, lists_per_step=1, loss=PAPER_LOSS)
            training = replace(space, validation={}, test={})  # without what training would only measure itself on
            params = library_meta_train(training, MODEL, config, key=jax.random.key(seed)).params
        else:
            tables = [tensors(task) for task in space.train.values()]
            decisions = LIBRARY if who == "torch" else REFERENCE
            params = from_torch(MODEL, meta_train(tables, MODEL, decisions, steps=given.steps, seed=seed, fused=True))
        with atomic_writer(path) as file:
            np.savez(file, *map(np.asarray, jax.tree.leaves(params)))
        print(f"{who} meta-trained on {space.name} for {draw}: {time.perf_counter() - begun:.0f} s", flush=True)
    like = jax.eval_shape(lambda: init(MODEL, space.n_columns, jax.random.key(0)))
    with np.load(path) as found:
        leaves = [jnp.asarray(found[name]) for name in found.files]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def search(
    given: Given, space: SearchSpace, variant: str, draw: str, datasets: list[str], folder: Path
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Runs of one variant from one draw; yields dataset, draw and trace."""
    who, where, decisions = VARIANTS[variant]
    params = weights(given, space, who, draw, folder)
    design = draw.partition("~")[0]
    tasks = {name: space.split(given.split)[name] for name in datasets}
    rows = {name: {draw: space.designs[name][design]} for name in datasets}
    if where == "jax":
        fine_tuning = FineTuneConfig(epochs=given.epochs, learning_rate=given.learning_rate, loss=PAPER_LOSS)
        method = DRE(model=MODEL, fine_tuning=fine_tuning, acquisition=AcquisitionConfig(kind="ei"))
        key = jax.random.fold_in(jax.random.key(run_id(variant)), run_id(space.name))
        yield from run_tasks(method, params, tasks, rows, n_trials=given.trials, key=key)
        return
    ensemble = to_torch(MODEL, params, decisions.response_scale)
    tuning = {"epochs": given.epochs, "learning_rate": given.learning_rate, "fused": True}
    for name, task in tasks.items():
        seed = run_id(f"{variant} {space.name} {name} {draw}")
        design_rows = rows[name][draw].tolist()
        yield name, draw, optimise(ensemble, task, design_rows, decisions, trials=given.trials, seed=seed, **tuning)


def open_results(given: Given, variant: str, path: Path) -> Results:
    """Results that an earlier call left of a variant."""
    facts = {name: getattr(given, name) for name in FACTS}
    if not path.exists():
        return Results({}, {"method": variant, "protocol": facts, "versions": versions("torch")})
    found = read_results(path)
    if found.meta["protocol"] != facts:
        raise SystemExit(f"{path} holds runs of {found.meta['protocol']}, not {facts}; give another --out")
    return found


def run_variant(given: Given, spaces: list[SearchSpace], variant: str, draw: str, folder: Path) -> None:
    """Does what is missing of a variant from one draw."""
    path = folder / f"{variant}.json"
    results = open_results(given, variant, path)
    for space in spaces:
        done = results.traces.get(space.name, {})
        missing = [name for name in space.split(given.split) if draw not in done.get(name, {})]
        if not missing:
            continue
        begun = time.perf_counter()
        for dataset, seed, trace in search(given, space, variant, draw, missing, folder):
            results = add_trace(results, space.name, dataset, seed, trace)
            write_results(path, results)
        taken = time.perf_counter() - begun
        print(f"{variant}: {space.name} from {draw}, {len(missing)} runs in {taken:.0f} s", flush=True)


def compare_all(given: Given, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every pair of `PAIRS` that has runs, at the trials of `AT`; a line each is printed."""
    paths = {name: folder / f"{name}.json" for name in VARIANTS}
    results = {name: open_results(given, name, path) for name, path in paths.items() if path.exists()}
    found: dict[str, list[dict[str, Any]]] = {}
    for pair in PAIRS:
        if set(pair) <= set(results):
            comparison = compare({name: results[name] for name in pair})
            found[" - ".join(pair)] = [paired(comparison, trial) for trial in AT if trial <= given.trials]
    for name, each in found.items():
        for one in each:
            print(f"{name:<24} {', '.join(f'{key} {value}' for key, value in one.items())}", flush=True)
    return found


def paired(comparison: Comparison, trial: int) -> dict[str, Any]:
    """Mean regrets of two variants after so many trials, and what signed-rank tests say of the difference."""
    tests = {f"p_{unit}": significance(comparison, trial, unit=unit).wilcoxon_p[0, 1] for unit in get_args(Unit)}
    regret = comparison.average_regret()[:, trial].tolist()
    return {"trial": trial, "runs": len(comparison.runs), "regret": regret, **tests}


def arguments(given: Sequence[str] | None) -> Given:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder in HPO-B's layout")
    parser.add_argument("--space", action="append", required=True)
    parser.add_argument("--out", type=Path, required=True, help="JSON file of the summary")
    parser.add_argument("--split", default="validation")
    designs = ",".join(f"test{i}" for i in range(5))
    parser.add_argument("--designs", default=designs, help="each with a meta-training of its own")
    parser.add_argument("--repeats", type=int, default=1, help="of the designs, with other seeds")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--steps", type=int, default=3000, help="of meta-training")
    parser.add_argument("--epochs", type=int, default=100, help="of fine-tuning")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="of fine-tuning")
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument("--summary", action="store_true", help="compare what is there, run nothing")
    return parser.parse_args(given)


def main(asked: Sequence[str] | None = None) -> None:
    given = arguments(asked)
    torch.set_num_threads(1)
    prepare()
    folder = given.out.with_suffix("")
    make_folder(folder)
    if not given.summary:
        spaces = [load_space(given.data, name) for name in given.space]
        # A draw is a design, with a mark where it comes again with other seeds. In this order, so that what is done at
        # any time is done for all.
        draws = [f"{name}~{i}" if i else name for i in range(given.repeats) for name in given.designs.split(",")]
        for draw in draws:
            for variant in given.variants.split(","):
                run_variant(given, spaces, variant, draw, folder)
    facts = {name: getattr(given, name) for name in FACTS}
    write_json(given.out, {"protocol": facts, "comparisons": compare_all(given, folder)}, indent=1)


if __name__ == "__main__":
    main()
