"""Suggestions without a method, and numbers of examples."""

import os

import pytest
from hypothesis import settings

from dre_jax.tuning.engine.engine import Engine


@pytest.fixture
def engine_calls(monkeypatch, even_points):
    """The trials that `Engine.propose` gets, those with a value and others' configurations, and its options by call."""
    calls = []
    propose = Engine.propose

    def record(self, trials, **options):
        others = {state: [one.params for one in trials if one.state == state] for state in ("running", "failed")}
        calls.append({"observed": [trial for trial in trials if trial.state not in others], **others, **options})
        return propose(self, trials, **options)

    monkeypatch.setattr(Engine, "propose", record)
    return calls


def examples(many):
    """The same examples at every run: so many, or a third of them where the thorough tests are left out."""
    short = os.environ.get("DRE_JAX_TESTS") == "short"
    return settings(derandomize=True, deadline=None, database=None, max_examples=many // 3 if short else many)
