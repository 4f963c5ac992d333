"""Each rival on a table and on a live function with a condition, with past studies."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from dre_jax.tuning import Categorical, Evaluated, Float, Int, Space

SPACE = Space(
    {
        "rate": Float(1e-3, 1.0, log=True),
        "booster": Categorical(["linear", "tree"]),
        "depth": Int(1, 8, when={"booster": "tree"}),
    }
)
PACKAGES = {
    "hedged-prior": (),
    "gp-mixture": (),
    "random": (),
    "tpe": ("optuna",),
    "tpe-best": ("optuna",),
    "smac": ("smac", "ConfigSpace"),
    "gp-sampler": ("optuna", "torch"),
    "gp-sampler-best": ("optuna", "torch"),
    "baybe": ("baybe",),
    "ax": ("ax",),
    "botorch": ("botorch",),
    "turbo": ("botorch",),
    "saas": ("botorch", "numpyro"),
    "syne-quantiles": ("syne_tune", "huggingface_hub"),
    "syne-box": ("syne_tune", "huggingface_hub"),
    "syne-box-cqr": ("syne_tune", "huggingface_hub"),
}
SLOW = ("hedged-prior", "smac", "baybe", "ax", "botorch", "saas")
ONE_KIND = {"hedged-prior": "", "gp-mixture": "table", "smac": "live"}
"""Rivals that take seconds, with the one kind of task, if any, that is not left to the thorough tests."""


def marks_of(name, kind):
    is_more = ONE_KIND.get(name, kind) != kind
    return [*[pytest.mark.slow] * (name in SLOW), *[pytest.mark.thorough] * is_more]


CASES = [pytest.param(name, kind, marks=marks_of(name, kind)) for name in PACKAGES for kind in ("table", "live")]


def value(params: Mapping[str, Any], shift: float = 0.0) -> float:
    """Highest for a tree of depth 6 and a rate of 0.1, times ten to the power of the shift."""
    return -((np.log10(params["rate"]) + 1.0 - shift) ** 2) - (params.get("depth", 0) - 6) ** 2 / 9.0


def values(configurations: Sequence[Mapping[str, Any]]) -> np.ndarray:
    return np.array([value(params) for params in configurations])


def drawn(n: int, seed: int) -> list[dict[str, Any]]:
    return [SPACE.params(point) for point in np.random.default_rng(seed).random((n, len(SPACE)))]


def task_of(part, kind: str):
    problems = part("rivals.problems")
    past = {f"study {s}": [Evaluated(p, value(p, 0.1 * s)) for p in drawn(8, s)] for s in (1, 2)}
    problem, rows = problems.Problem(SPACE, past), drawn(30, 9)
    if kind == "live":
        return problems.Task("live", problem, drawn(2, 5), evaluate=values)
    table = problems.Table(SPACE, rows, values(rows))
    return problems.Task("table", problem, rows[:2], table=table)


def test_each_rival_names_its_packages(part):
    assert {name: entry.packages for name, entry in part("rivals.registry").RIVALS.items()} == {
        name: ("dre_jax",) if name in ("hedged-prior", "gp-mixture") else packages
        for name, packages in PACKAGES.items()
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_rival_searches(part, name, kind):
    """Its configurations are valid, and the design comes first; no row of a table comes twice."""
    missing = [package for package in PACKAGES[name] if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    task, evaluated = task_of(part, kind), []
    if kind == "live":

        def evaluate(configurations):
            evaluated.extend(SPACE.check(params) for params in configurations)
            return values(configurations)

        task = part("rivals.problems").Task("live", task.problem, task.design, evaluate=evaluate)
    found = part("rivals.search").search(task, part("rivals.registry").RIVALS[name].make(), 3, 4)
    assert (len(found.values), len(found.seconds), found.trials) == (6, 4, 4)
    np.testing.assert_allclose(found.values[:2], values(task.design))
    if kind == "table":
        assert len(set(found.values)) == 6
        assert set(found.values) <= set(task.table.values.tolist())
    else:
        assert evaluated[:2] == list(task.design)


@pytest.mark.filterwarnings("ignore")
def test_the_best_of_each_past_study_is_enqueued(part):
    pytest.importorskip("optuna")
    task = task_of(part, "live")
    rival = part("rivals.registry").RIVALS["tpe-best"].make()(task.problem, None, 0)
    for params in task.design:
        rival.tell(params, value(params))
    best = [max(drawn(8, s), key=lambda p, s=s: value(p, 0.1 * s)) for s in (1, 2)]
    for expected in best:
        asked = rival.ask()
        assert asked == pytest.approx(expected)
        rival.tell(asked, value(asked))
    values_told = sorted(trial.value for trial in rival.study.trials)
    assert values_told == pytest.approx(sorted(map(value, [*task.design, *best])))


def test_a_search_ends_after_its_seconds(part):
    """A rival that takes longer than its limit suggests once more at most; what is missing is NaN."""
    task = task_of(part, "live")
    found = part("rivals.search").search(task, part("rivals.registry").RIVALS["random"].make(), 0, 3, limit=0.0)
    assert len(found.seconds) <= 1
    assert np.isnan(found.values[-2:]).all()
    assert np.isfinite(found.values[:2]).all()
