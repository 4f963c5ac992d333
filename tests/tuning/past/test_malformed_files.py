"""Study files that are malformed, and JSON that is deep: each ends in one line of the library's own.

Files stay as they were. Suggestions are even points here, so that nothing is compiled; spaces are another file's.
"""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre_jax import Bool, Categorical, DreError, Float, Int, Optimizer, Space, write_space
from dre_jax.cli.suggest import suggest
from dre_jax.tuning.command.history_csv import read_history
from dre_jax.tuning.engine import Engine
from dre_jax.tuning.space.json_format import to_json
from tests.tuning.conftest import damaged, examples, json_values

often = examples(300)
SPACE = Space(
    {
        "lr": Float(1e-3, 1.0, log=True),
        "kernel": Categorical(["rbf", "poly", None, 1]),
        "degree": Int(2, 5, when={"kernel": ["poly"]}),
        "scale": Bool(when={"kernel": ["poly"]}),
    }
)
STUDY = {
    "dre_jax_study": 1,
    "direction": "minimize",
    "seed": 0,
    "space": to_json(SPACE),
    "surrogate": None,
    "trials": [
        {"params": {"lr": 0.5, "kernel": "rbf"}, "state": "complete", "value": 1.0},
        {"params": {"lr": 0.1, "kernel": "poly", "degree": 3, "scale": True}, "state": "complete", "value": "-inf"},
        {"params": {"lr": 0.25, "kernel": None}, "state": "failed"},
        {"params": {"lr": 0.125, "kernel": 1}, "state": "running"},
    ],
}
FIELDS = "params state value complete running failed inf -inf nan lr kernel degree scale"
WORDS = st.sampled_from(FIELDS.split())
LIKELY = st.sampled_from([0.5, 0.25, 3, "rbf", "poly", None, True, "1", "0.5", "null", "true", ""])
"""What may stand where something else stood."""
ANYTHING = json_values(WORDS)


@pytest.fixture(autouse=True, scope="module")
def even_points_alone():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "_can_value", lambda self, observed: False)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    write_space(path / "space.json", SPACE)
    return path


@st.composite
def damaged_studies(draw):
    """A damaged study; some torn."""
    text = json.dumps(draw(damaged([STUDY], WORDS, LIKELY | ANYTHING))).encode()
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


def is_refused(act, *files):
    """Whether it is refused, in one line, with files as they were; anything but a `DreError` comes out."""
    before = [path.read_bytes() for path in files]
    try:
        act()
    except DreError as error:
        lines = str(error).splitlines()
    else:
        return False
    assert len(lines) == 1
    assert lines[0]
    assert [path.read_bytes() for path in files] == before
    return True


def load(path):
    optimizer = Optimizer.load(path, None)  # a file that lost its surrogate is warned of elsewhere
    assert all(optimizer.space.check(trial.params) == trial.params for trial in optimizer.trials)
    optimizer.ask()


@often
@given(damaged_studies() | st.binary(max_size=40) | ANYTHING.map(lambda x: json.dumps(x).encode()))
def test_studies(folder, content):
    path = folder / "study.json"
    path.write_bytes(content)
    is_refused(lambda: load(path), path)


def test_json_that_is_deep(folder):
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
