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
is there. Everything on one core; set JAX_NUM_CPU_DEVICES=1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import torch

from benchmarks.parity_statistics import Paired, paired
from benchmarks.torch_reference import LIBRARY, REFERENCE, Decisions, meta_train, tensors
from benchmarks.torch_search import optimise
from benchmarks.torch_weights import from_torch, to_torch
from dre_jax import DRE, FineTuneConfig, MetaTrainConfig
from dre_jax.cli.runtime import prepare
from dre_jax.data import Results, SearchSpace, add_trace, load_space, read_results, write_results
from dre_jax.data.files import atomic_writer, write_json
from dre_jax.model import EnsembleParams, preset
from dre_jax.search.acquisition import AcquisitionConfig
from dre_jax.search.batch import run_id, run_tasks
from dre_jax.training.config import PAPER_LOSS
from dre_jax.training.trainer import meta_train as library_meta_train
from dre_jax.training.trainer import versions

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


Given = argparse.Namespace
_FACTS = ("split", "steps", "epochs", "learning_rate", "trials")


def facts(given: Given) -> dict[str, Any]:
    """What a result depends on, apart from its runs."""
    return {name: getattr(given, name) for name in _FACTS}


def draws_of(designs: Sequence[str], repeats: int) -> tuple[str, ...]:
    """Names of what is drawn: a design, and a design with a mark where it comes again with other seeds.

    Example:
      >>> draws_of(["test0", "test1"], 2)
      ('test0', 'test1', 'test0~1', 'test1~1')
    """
    return tuple(f"{design}~{i}" if i else design for i in range(repeats) for design in designs)


def design_of(draw: str) -> str:
    """The design that a draw starts from."""
    return draw.partition("~")[0]


def weights(given: Given, space: SearchSpace, who: str, draw: str, folder: Path) -> EnsembleParams:
    """Meta-trained weights, from the folder where they are there."""
    path = folder / f"weights-{who}-{space.name}-{draw}.npz"
    if not path.exists():
        begun = time.perf_counter()
        seed = run_id(draw)
        if who == "jax":
            config = MetaTrainConfig(steps=given.steps, evaluate_every=given.steps, lists_per_step=1, loss=PAPER_LOSS)
            params = library_meta_train(_training_only(space), MODEL, config, key=jax.random.key(seed)).params
        else:
            tables = [tensors(task) for task in space.train.values()]
            decisions = LIBRARY if who == "torch" else REFERENCE
            params = from_torch(MODEL, meta_train(tables, MODEL, decisions, steps=given.steps, seed=seed, fused=True))
        parts = {f"{part}/{name}": leaf for part, tree in params._asdict().items() for name, leaf in tree.items()}
        with atomic_writer(path) as file:
            arrays: dict[str, Any] = {name: np.asarray(leaf) for name, leaf in parts.items()}
            np.savez(file, **arrays)
        print(f"{who} meta-trained on {space.name} for {draw}: {time.perf_counter() - begun:.0f} s", flush=True)
    with np.load(path) as found:
        trees: dict[str, dict[str, jax.Array]] = {"scorers": {}, "deep_set": {}}
        for name in found.files:
            part, leaf = name.split("/")
            trees[part][leaf] = jax.numpy.asarray(found[name])
    return EnsembleParams(**trees)


def _training_only(space: SearchSpace) -> SearchSpace:
    """The space without what training would only measure itself on."""
    return replace(space, validation={}, test={})


Run = tuple[str, str, np.ndarray]


def search(
    given: Given, space: SearchSpace, variant: str, draw: str, datasets: list[str], folder: Path
) -> Iterator[Run]:
    """Runs of one variant from one draw; yields dataset, draw and trace."""
    who, where, decisions = VARIANTS[variant]
    params = weights(given, space, who, draw, folder)
    tasks = {name: space.split(given.split)[name] for name in datasets}
    rows = {name: {draw: space.designs[name][design_of(draw)]} for name in datasets}
    if where == "jax":
        fine_tuning = FineTuneConfig(epochs=given.epochs, learning_rate=given.learning_rate, loss=PAPER_LOSS)
        method = DRE(model=MODEL, fine_tuning=fine_tuning, acquisition=AcquisitionConfig(kind="ei"))
        key = jax.random.fold_in(jax.random.key(run_id(variant)), run_id(space.name))
        yield from run_tasks(method, params, tasks, rows, n_trials=given.trials, key=key)
        return
    run = partial(
        optimise,
        to_torch(MODEL, params, decisions.response_scale),
        decisions=decisions,
        trials=given.trials,
        epochs=given.epochs,
        learning_rate=given.learning_rate,
        fused=True,
    )
    for name, task in tasks.items():
        yield name, draw, run(task, rows[name][draw].tolist(), seed=run_id(f"{variant} {space.name} {name} {draw}"))


def open_results(given: Given, variant: str, folder: Path) -> Results:
    """What an earlier call left of a variant."""
    path = folder / f"{variant}.json"
    meta = {"method": variant, "protocol": facts(given), "versions": {**versions(), "torch": torch.__version__}}
    if not path.exists():
        return Results({}, meta)
    found = read_results(path)
    if found.meta["protocol"] != facts(given):
        raise SystemExit(f"{path} holds runs of {found.meta['protocol']}, not {facts(given)}; give another --out")
    return found


def run_variant(given: Given, spaces: list[SearchSpace], variant: str, draw: str, folder: Path) -> None:
    """Does what is missing of a variant from one draw."""
    results, path = open_results(given, variant, folder), folder / f"{variant}.json"
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


def compare_all(given: Given, folder: Path) -> dict[str, list[Paired]]:
    """Every pair of `PAIRS` that has runs, at the trials of `AT`; a line each is printed."""
    runs = {
        name: {run[:3]: run[3] for run in open_results(given, name, folder).runs()}
        for name in VARIANTS
        if (folder / f"{name}.json").exists()
    }
    pairs = [(a, b) for a, b in PAIRS if {a, b} <= set(runs)]
    at = [trial for trial in AT if trial <= given.trials]
    found = {}
    for first, second in pairs:
        name = f"{first} - {second}"
        found[name] = [paired(runs[first], runs[second], trial, given.margin) for trial in at]
        for one in found[name]:
            print(
                f"{name:<24} {one.runs:>3} runs at {one.trial:>2}: regret {one.regret[0]:.4f} and {one.regret[1]:.4f}, "
                f"difference {one.difference:+.4f} [{one.interval[0]:+.4f}, {one.interval[1]:+.4f}], "
                f"p {one.p_runs:.3f} over runs, {one.p_tasks:.3f} over {one.tasks} tasks, "
                f"{one.p_trainings:.3f} over {one.trainings} meta-trainings; {one.equal_runs} equal; "
                f"{'' if one.equivalent else 'not '}equivalent within {given.margin} "
                f"(from {one.smallest_margin:.4f} on)",
                flush=True,
            )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs what is missing, then compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder in HPO-B's layout")
    parser.add_argument("--space", action="append", required=True)
    parser.add_argument("--out", type=Path, required=True, help="JSON file of the summary")
    parser.add_argument("--split", default="validation")
    parser.add_argument(
        "--designs", default="test0,test1,test2,test3,test4", help="each with a meta-training of its own"
    )
    parser.add_argument("--repeats", type=int, default=1, help="of the designs, with other seeds")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--steps", type=int, default=3000, help="of meta-training")
    parser.add_argument("--epochs", type=int, default=100, help="of fine-tuning")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="of fine-tuning")
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument("--margin", type=float, default=0.01, help="of regret, for the equivalence")
    parser.add_argument("--summary", action="store_true", help="compare what is there, run nothing")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    prepare()
    folder = given.out.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    if not given.summary:
        spaces = [load_space(given.data, name) for name in given.space]
        # In this order, so that what is done at any time is done for all.
        for draw in draws_of(given.designs.split(","), given.repeats):
            for variant in given.variants.split(","):
                run_variant(given, spaces, variant, draw, folder)
    found = compare_all(given, folder)
    comparisons = {name: [one._asdict() for one in each] for name, each in found.items()}
    write_json(given.out, {"protocol": facts(given), "margin": given.margin, "comparisons": comparisons}, indent=1)


if __name__ == "__main__":
    main()
