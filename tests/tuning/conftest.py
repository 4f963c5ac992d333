"""Strategies of the tests of damaged files, and suggestions without a method."""

import copy
import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from dre_jax.tuning.engine import Engine

NUMBERS = (
    st.integers()
    | st.floats()
    | st.sampled_from([10**400, -(10**400), 2**53, 2**32, 1e308, -1e308, 5e-324, 1e-300, 0, -0.0, 1, 1.5])
)


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


def places(node, path=()):
    """All paths into a JSON value."""
    yield path
    if isinstance(node, (dict, list)):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*path, key))


def leaves(words):
    return st.none() | st.booleans() | NUMBERS | st.text(max_size=4) | words


def json_values(words):
    """Nested JSON values, with words of a format among them."""
    nest = lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=3), inner, max_size=5)  # noqa: E731
    return st.recursive(leaves(words), nest)


@st.composite
def damaged(draw, wholes, words, replacements):
    """One of several JSON values with a few places removed, replaced, or renamed."""
    whole = copy.deepcopy(draw(st.sampled_from(wholes)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in places(whole) if path] or [()]))
        if not path:
            return draw(replacements)
        parent = whole
        for key in path[:-1]:
            parent = parent[key]
        what = draw(st.sampled_from(["remove", "replace", "rename"]))
        if what == "replace" or isinstance(parent, list):
            parent[path[-1]] = draw(replacements)
        else:
            value = parent.pop(path[-1])
            if what == "rename":
                parent[draw(words | st.text(max_size=3))] = value
    return whole
