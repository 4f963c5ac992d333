"""``dre-jax info``: the content of a checkpoint."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dre_jax.data.columns import Column
from dre_jax.data.features import FeatureSpace
from dre_jax.methods.checkpoints.fitted import FittedMethod, has_fitted, load_fitted
from dre_jax.methods.dre.training_checkpoint import TrainingCheckpoint
from dre_jax.methods.entries.settings import leaves, to_text
from dre_jax.methods.registry import companion_of


def info(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            help="Checkpoint folder of a search space; a surrogate that ships, such as `svc` or `svc.auc`; or "
            "`pretrained`, which lists these surrogates."
        ),
    ],
) -> None:
    """Describe a checkpoint: method, configuration, columns, training, data, versions."""
    from dre_jax.tuning.pretrained import FAMILIES, pretrained_path

    if not checkpoint.exists():
        name, _, metric = str(checkpoint).partition(".")
        if name == "pretrained":
            families = ((family, ", ".join(family.metrics) or "no surrogate") for family in FAMILIES.values())
            print_facts({family.name: f"{metrics} by {', '.join(family.space)}" for family, metrics in families})
            return
        if name in FAMILIES and FAMILIES[name].metrics and metric in ("", *FAMILIES[name].metrics):
            checkpoint = pretrained_path(name, metric or FAMILIES[name].metrics[0])
    print_facts(dict(_lines(checkpoint, load_fitted(checkpoint, with_params=False))))


def print_facts(facts: Mapping[str, str]) -> None:
    """Prints one line per fact, with aligned texts."""
    width = max(map(len, facts))
    for name, text in facts.items():
        print(f"{name:<{width}}  {text}")


def _lines(folder: Path, checkpoint: FittedMethod) -> Iterator[tuple[str, str]]:
    facts = checkpoint.facts
    yield "method", checkpoint.name
    yield "search space", f"{checkpoint.space}, {checkpoint.n_columns} columns"
    if direction := checkpoint.extra.get("tuning", {}).get("direction"):
        yield "direction", f"{direction} {checkpoint.extra['tuning'].get('metric') or 'the past values'}"
    companion, step = companion_of(checkpoint.name), TrainingCheckpoint(folder).latest_step()
    if not has_fitted(folder):
        yield from _training(folder)
    elif companion is not None and step:
        yield "companion", f"{companion}, {step} steps"
    yield from facts.get("decided", {}).items()
    yield from _scaling(folder, checkpoint)
    tasks = f"{len(facts['tasks'])} tasks, " if "tasks" in facts else ""
    yield "training data", f"{tasks}fingerprint {facts.get('fingerprint', 'unknown')[:16]}"
    for name, value in facts.get("origin", {}).items():
        yield name, str(value)
    yield "versions", ", ".join(f"{name} {value}" for name, value in facts.get("versions", {}).items())
    yield "computed by", "; ".join(" on ".join(backend.values()) for backend in facts.get("backends", [])) or "unknown"
    yield "columns", "names unknown" if checkpoint.columns is None else _columns(checkpoint.columns)
    for path, value in leaves(checkpoint.method):
        yield path, to_text(value)


def _scaling(folder: Path, checkpoint: FittedMethod) -> Iterator[tuple[str, str]]:
    """Yields the features of the past tasks, and how the best configuration moves with them."""
    from dre_jax.tuning import Surrogate

    content = checkpoint.extra.get("tuning", {}).get("features")
    if content is None:
        return
    yield "features", str(FeatureSpace.from_json(content))
    if (scaling := Surrogate.load(folder).scaling) is not None:
        yield "scaling", "; ".join(scaling.lines())


def _columns(columns: Sequence[Column]) -> str:
    """Returns the names of columns, grouped by kind."""
    kinds: dict[str, list[str]] = {}
    for column in columns:
        kinds.setdefault(f"log {column.kind}" if column.log else column.kind, []).append(column.name)
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())


def _training(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the progress and losses of an ensemble's training."""
    metadata = TrainingCheckpoint(folder).metadata()
    fields, history = metadata["configuration"], metadata["history"]
    model, training = fields["model"], fields["training"]
    phi, rho = ("-".join(map(str, model[part])) for part in ("phi", "rho"))
    context = "none" if model["context"] == "none" else f"{model['context']} deep set {phi}, mean, {rho}"
    yield "steps", f"{metadata['step']} of {training['steps']}"
    yield "model", f"{model['members']} scorers {'-'.join(map(str, model['hidden']))}, {context}"
    lists = f"{training['lists_per_step']} lists of {training['n_query']} a step and member"
    yield "training", f"{lists}, learning rate {training['learning_rate']:g} {training['schedule']}"
    loss = training["loss"]
    yield "loss", f"{loss['name']}, weights {loss['weights']}"
    (_, first, first_validation), (_, last, last_validation) = history[0], history[-1]
    validation = "" if last_validation is None else f", validation {first_validation:.3f} -> {last_validation:.3f}"
    yield "losses", f"training {first:.3f} -> {last:.3f}{validation}"
    yield "best step", "not kept" if metadata["best_step"] is None else str(metadata["best_step"])
