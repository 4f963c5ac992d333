"""Malformed spaces and studies, and JSON that is deep: each ends in one line of the library's own.

Suggestions are even points here, so that nothing is compiled.
"""

import copy
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre_jax import Bool, Categorical, DreError, Float, Int, Optimizer, Space, write_space
from dre_jax.cli.suggest import suggest
from dre_jax.data import bundled
from dre_jax.data.columns import read_descriptor
from dre_jax.space.descriptors import from_descriptor
from dre_jax.space.json_format import from_json, to_json
from dre_jax.tuning.command.history_csv import read_history
from dre_jax.tuning.engine import engine
from tests.conftest import space_filling_suggestion
from tests.tuning.conftest import examples

pytestmark = pytest.mark.filterwarnings("ignore:the range of a hyperparameter should be:dre_jax.errors.DataWarning")
SPACE = Space(
    {
        "C": Float(1e-3, 1e3, log=True, likely=(0.1, 10.0)),
        "kernel": Categorical(["rbf", "poly", None, 1], likely="rbf", default="rbf"),
        "degree": Int(2, 5, when={"kernel": ["poly"]}, default=3),
        "rate": Float(0.0, 0.5, step=0.1),
        "scale": Bool(when={"kernel": ["poly"]}),
    }
)
CODED = from_descriptor(read_descriptor(bundled.path(), "svm"))
SPACES = [to_json(SPACE), to_json(SPACE)["parameters"], to_json(CODED)]
POLY = {"C": 0.1, "kernel": "poly", "degree": 3, "rate": 0.5, "scale": True}
STUDY = {
    "dre_jax_study": 1,
    "direction": "minimize",
    "seed": 0,
    "space": to_json(SPACE),
    "surrogate": None,
    "trials": [
        {"params": {"C": 0.5, "kernel": "rbf", "rate": 0.1}, "state": "complete", "value": 1.0},
        {"params": POLY, "state": "complete", "value": "-inf"},
        {"params": {"C": 0.25, "kernel": None, "rate": 0.2}, "state": "failed"},
        {"params": {"C": 0.125, "kernel": 1, "rate": 0.3}, "state": "running"},
    ],
}
OF_SPACES = """type low high log step when likely default choices ordered parameters format codes columns names scale
empty missing unset float int categorical bool kernel poly C C.na"""
OF_STUDIES = "params state value complete running failed inf -inf nan C kernel degree rate scale"
NUMBERS = (
    st.integers()
    | st.floats()
    | st.sampled_from([10**400, -(10**400), 2**53, 2**32, 1e308, -1e308, 5e-324, 1e-300, 0, -0.0, 1, 1.5])
)
LIKELY = st.sampled_from([0.5, 0.25, 3, "rbf", "poly", None, True, "1", "0.5", "null", "true", ""])
"""Values for the place of another value in a study."""


def json_leaves(words):
    return st.none() | st.booleans() | NUMBERS | st.text(max_size=4) | st.sampled_from(words.split())


def json_values(words):
    """Nested JSON values, with words of a format among them."""
    names = st.sampled_from(words.split()) | st.text(max_size=3)
    nest = lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5)  # noqa: E731
    return st.recursive(json_leaves(words), nest)


def places(node, path=()):
    """All paths into a JSON value."""
    yield path
    if isinstance(node, (dict, list)):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*path, key))


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
        change = draw(st.sampled_from(["remove", "replace", "rename"]))
        if change == "replace" or isinstance(parent, list):
            parent[path[-1]] = draw(replacements)
        else:
            value = parent.pop(path[-1])
            if change == "rename":
                parent[draw(st.sampled_from(words.split()) | st.text(max_size=3))] = value
    return whole


@st.composite
def damaged_studies(draw):
    """A damaged study; some torn."""
    text = json.dumps(draw(damaged([STUDY], OF_STUDIES, LIKELY | json_values(OF_STUDIES)))).encode()
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


@pytest.fixture(autouse=True, scope="module")
def even_points_alone():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "suggest_point", space_filling_suggestion)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    write_space(path / "space.json", SPACE)
    return path


def is_refused(act, *files):
    """Returns whether an action raises a `DreError`, of one line, and leaves files as they were."""
    before = [path.read_bytes() for path in files]
    try:
        act()
    except DreError as error:
        (line,) = str(error).splitlines()
        assert line
        assert [path.read_bytes() for path in files] == before
        return True
    return False


def use(space):
    """Encodes and decodes without a fault, whatever strange bounds the space has."""
    params = space.decode(np.zeros(len(space.columns)))
    assert np.isfinite(space.encode(params)).all()
    assert space.check(space.params(np.full(len(space), 0.5)))
    again = to_json(from_json(json.loads(json.dumps(to_json(space)))))
    assert again == to_json(space)


LEAVES, ANYTHING = json_leaves(OF_SPACES), json_values(OF_SPACES)


@examples(400)
@given(ANYTHING | damaged(SPACES, OF_SPACES, ANYTHING))
def test_spaces_in_json(document):
    is_refused(lambda: use(from_json(document)))


def load(path):
    optimizer = Optimizer.load(path, None)  # a file that lost its surrogate is warned of elsewhere
    assert all(optimizer.space.check(trial.params) == trial.params for trial in optimizer.trials)
    optimizer.ask()


@examples(300)
@given(damaged_studies() | st.binary(max_size=40) | json_values(OF_STUDIES).map(lambda x: json.dumps(x).encode()))
def test_studies(folder, content):
    path = folder / "study.json"
    path.write_bytes(content)
    is_refused(lambda: load(path), path)


def test_deep_json(folder):
    """Deeper than the interpreter goes."""
    for depth in (500, 900, 5_000, 200_000):
        for text in ('{"x":' * depth, "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
            for name in ("study.json", "history.csv"):
                (folder / name).write_text(text)
            for act in (
                lambda: load(folder / "study.json"),
                lambda: suggest(folder / "study.json"),
                lambda: read_history(folder / "history.csv", SPACE),
            ):
                assert is_refused(act)
    assert sys.getrecursionlimit() >= 500
