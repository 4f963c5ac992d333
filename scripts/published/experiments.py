"""The paper's experiments on HPO-B, as `experiments.toml` declares them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from published.claims import CHECKS, Claim, equals

_DECLARED = tomllib.loads(Path(__file__).with_name("experiments.toml").read_text(encoding="utf-8"))


class Experiment(NamedTuple):
    """One panel of the paper's figures, with its critical-difference diagram."""

    name: str
    """Folder of its figures."""
    title: str
    files: dict[str, str]
    """Method, as the paper calls it -> name of its trace."""
    notes: tuple[str, ...]
    """Remarks on what is drawn, and on what the traces lack."""
    claims: tuple[Claim, ...]
    grid: bool = False
    """True where the paper also shows it by search space."""


def _experiment(
    *,
    notes: list[str],
    claims: list[dict[str, Any]],
    ranks: Mapping[str, Any] | None = None,
    regrets: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Experiment:
    everyone = tuple(fields["files"])
    numbers = [*_numbers("rank", ranks or {}, everyone), *_numbers("regret", regrets or {}, everyone)]
    return Experiment(**fields, notes=tuple(notes), claims=(*(_claim(**claim) for claim in claims), *numbers))


def _claim(text: str, check: str, methods: list[str], **options: int) -> Claim:
    return Claim(text, tuple(methods), partial(CHECKS[check], methods=methods, **options))


def _numbers(quantity: str, values: Mapping[str, Any], everyone: tuple[str, ...]) -> Iterator[Claim]:
    """Yields the averages over the runs of everyone, pooled, that the traces must give to four decimals."""
    for method, by_trial in values.items():
        for trial, value in by_trial.items():
            check = partial(equals, quantity=quantity, method=method, trial=int(trial), value=value)
            text = f"Average {quantity} of {method} after {trial} trials: {value:.4f}"
            yield Claim(text, everyone, check, int(trial), is_number=True)


INTRODUCTION = tuple(_DECLARED["introduction"])
EXPERIMENTS = tuple(_experiment(**fields) for fields in _DECLARED["experiments"])
