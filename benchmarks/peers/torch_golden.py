"""Results of the PyTorch reference for fixed weights and lists, in float64, as a small JSON file.

The library is held to it where PyTorch is not installed (tests/methods/dre/test_torch_parity.py).

    python -m benchmarks.peers.torch_golden tests/methods/dre/torch_parity.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from benchmarks.peers.torch_reference import (
    Batch,
    Ensemble,
    Table,
    adam,
    expected_improvement,
    host_tree,
    rank,
    to_torch,
    total_loss,
    train_step,
)
from dre_jax.data.files import write_text
from dre_jax.data.tasks import tie_levels
from dre_jax.methods.dre.model.ensemble import EnsembleParams
from dre_jax.methods.dre.model.model_config import ModelConfig

Context = Literal["own", "shared", "none"]
STEPS = 50
SIZES: dict[str, Any] = {"members": 3, "hidden": (6, 6), "phi": (6, 5), "rho": (6, 3), "initialiser": "torch_uniform"}
TASK_ROWS, N_TASKS, N_COLUMNS = 20, 2, 2
LISTS, N_SUPPORT, N_QUERY = 2, 4, 10
N_HISTORY = 12
TRAINING_RATE, TUNING_RATE = 1e-3, 1e-3
EMPTY = -1  # stands for a slot without a row


def make_table(rng: np.random.Generator) -> dict[str, Any]:
    """Two tasks, each sorted, best first; responses to one decimal, so that there are ties."""
    response = np.sort(rng.random((N_TASKS, TASK_ROWS)).round(1))[:, ::-1]
    return {
        "x": rng.random((N_TASKS * TASK_ROWS, N_COLUMNS)).round(3).tolist(),
        "response": response.ravel().tolist(),
        "level": np.concatenate([tie_levels(value) for value in response]).tolist(),
    }


def draw_rows(rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Support and query rows of one list, in order; now and then with empty slots at the end."""
    start = TASK_ROWS * int(rng.integers(N_TASKS))
    rows = start + rng.permutation(TASK_ROWS)
    k, n = int(rng.integers(2, N_SUPPORT + 1)), int(rng.integers(N_QUERY - 2, N_QUERY + 1))
    support, query = np.sort(rows[:k]).tolist(), np.sort(rows[k : k + n]).tolist()
    return support + [EMPTY] * (N_SUPPORT - k), query + [EMPTY] * (N_QUERY - n)


def _batch(table: Table, support: Sequence[Sequence[int]], query: Sequence[Sequence[int]]) -> Batch:
    s, q = torch.tensor(support), torch.tensor(query)
    s0, q0 = s.clamp(min=0), q.clamp(min=0)
    return Batch(table.x[s0], table.y[s0], table.x[q0], table.level[q0], s != EMPTY, q != EMPTY)


def _short(values: Any) -> Any:
    """A tree of lists, to nine digits: more than float32 holds."""
    if isinstance(values, EnsembleParams):
        return {
            part: leaves and {k: _short(leaf) for k, leaf in leaves.items()}
            for part, leaves in values._asdict().items()
        }
    flat = np.asarray(values, np.float64)
    return np.array([float(f"{value:.9g}") for value in flat.ravel()]).reshape(flat.shape).tolist()


def follow(model: ModelConfig, ensemble: Ensemble, steps: Sequence[Sequence[Batch]], rate: float) -> dict[str, Any]:
    """Losses before each step, the first gradient, and the parameters after all steps."""
    total_loss(ensemble, steps[0]).backward()
    gradient = _short(host_tree(model, ensemble, gradient=True))
    optimiser = adam(ensemble, rate)
    losses = [float(train_step(ensemble, optimiser, batches)) for batches in steps]
    return {"losses": _short(losses), "gradient": gradient, "after": _short(host_tree(model, ensemble))}


def judge(ensemble: Ensemble, table: Table) -> dict[str, Any]:
    """Scores, ranks and improvement of the first task's rows that are not in the history; the best row of it last."""
    history = Table(*(field[:N_HISTORY] for field in table))
    everyone = torch.cat([table.x[N_HISTORY:TASK_ROWS], history.x[:1]])
    with torch.no_grad():
        batch = Batch(history.x[None], history.y[None], everyone[None], torch.zeros(1, 0))
        scores = torch.cat(ensemble([batch])).numpy()
    ranks = rank(scores)
    result = {"scores": scores, "mean_rank": ranks.mean(axis=0), "deviation": ranks.std(axis=0)}
    result["log_improvement"] = expected_improvement(ranks, logarithm=True)
    return {name: _short(values) for name, values in result.items()}


def case(context: Context, table: Table, rng: np.random.Generator, seed: int) -> dict[str, Any]:
    model = ModelConfig(context=context, **SIZES)
    torch.manual_seed(seed)
    drawn_params = host_tree(model, Ensemble(model, N_COLUMNS))
    start = EnsembleParams(*(part and {name: leaf.round(5) for name, leaf in part.items()} for part in drawn_params))
    fresh = partial(to_torch, model, start, torch.float64)
    lists = [[[draw_rows(rng) for _ in range(LISTS)] for _ in range(model.members)] for _ in range(STEPS)]
    meta_steps = [[_batch(table, *zip(*own, strict=True)) for own in step] for step in lists]
    histories = [rng.permutation(N_HISTORY) for _ in range(STEPS)]
    k = N_HISTORY // 5
    epochs = [(np.sort(rows[:k]).tolist(), np.sort(rows[k:]).tolist()) for rows in histories]
    tuned_ensemble = fresh()
    fine = follow(model, tuned_ensemble, [[_batch(table, [s], [q])] for s, q in epochs], TUNING_RATE)
    return {
        "start": _short(start),
        "meta": {"lists": lists, **follow(model, fresh(), meta_steps, TRAINING_RATE)},
        "fine": {"epochs": epochs, **fine},
        "suggestion": judge(tuned_ensemble, table),
    }


def golden() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    raw = make_table(rng)
    x, response = (torch.tensor(raw[name], dtype=torch.float64) for name in ("x", "response"))
    table = Table(x, response, torch.tensor(raw["level"]))
    return {
        "made_by": "python -m benchmarks.peers.torch_golden FILE",
        "torch": torch.__version__.split("+")[0],
        "sizes": SIZES,
        "task_rows": TASK_ROWS,
        "n_history": N_HISTORY,
        "rates": {"meta": TRAINING_RATE, "fine": TUNING_RATE},
        "table": raw,
        "cases": {context: case(context, table, rng, seed) for seed, context in enumerate(get_args(Context))},
    }


def main() -> None:
    path = Path(sys.argv[1])
    write_text(path, json.dumps(golden(), separators=(",", ":")) + "\n")
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
