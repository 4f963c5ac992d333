"""``dre-jax info``: what a checkpoint holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def info(
    checkpoint: Annotated[Path, typer.Argument(help="A search space's checkpoint folder.", show_default=False)],
) -> None:
    """Describe a checkpoint: space, sizes, steps, losses, data, versions."""
    from dre_jax.training.checkpoint import Checkpoint

    found = Checkpoint(checkpoint).metadata()
    model, training, history = found["model"], found["training"], found["history"]
    phi, rho = ("-".join(map(str, model[part])) for part in ("phi", "rho"))
    context = "none" if model["context"] == "none" else f"{model['context']} deep set {phi}, mean, {rho}"
    lines = {
        "search space": f"{found['space']}, {found['columns']} columns",
        "steps": f"{found['step']} of {training['steps']}",
        "model": f"{model['members']} scorers {'-'.join(map(str, model['hidden']))}, {context}",
        "training": f"{training['lists_per_step']} lists of {training['n_query']} a step and member, "
        f"learning rate {training['learning_rate']:g} {training['schedule']}",
        "loss": f"{training['loss']['name']}, weights {training['loss']['weights']}, ties {training['loss']['ties']}",
        "losses": f"training {history[0][1]:.3f} -> {history[-1][1]:.3f}"
        + ("" if history[-1][2] is None else f", validation {history[0][2]:.3f} -> {history[-1][2]:.3f}"),
        "best step": "not kept" if found["best_step"] is None else str(found["best_step"]),
        "training data": f"fingerprint {found['fingerprint'][:16]}",
        "versions": ", ".join(f"{name} {value}" for name, value in found["versions"].items()),
    }
    width = max(map(len, lines))
    for name, text in lines.items():
        print(f"{name:<{width}}  {text}")
