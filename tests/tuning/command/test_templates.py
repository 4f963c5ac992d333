"""Commands with places for hyperparameters."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre_jax import Bool, Categorical, ConfigError, Float, Int, Space
from dre_jax.tuning.command.templates import parse
from tests.error_messages import error_table

SPACE = Space(
    {
        "lr": Float(1e-6, 1.0),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "coef": Float(-1.0, 1.0, when={"kernel": "poly"}),
    }
)
RBF = {"lr": 1e-05, "kernel": "rbf"}
POLY = {"lr": 0.5, "kernel": "poly", "degree": 3, "coef": -0.25}
REST = "{lr}{kernel}{degree}{coef}"
"""Names every hyperparameter, so that the rest of a command need not."""


@pytest.mark.parametrize(
    ("command", "rbf", "poly"),
    [
        (["{lr}", "-k={kernel}"], ["1e-05", "-k=rbf"], ["0.5", "-k=poly"]),
        (["--degree", "{degree}"], [], ["--degree", "3"]),
        (["--degree={degree}"], [], ["--degree=3"]),
        (["--verbose", "--degree={degree}"], ["--verbose"], ["--verbose", "--degree=3"]),
        (["-c", "k={kernel},d={degree}", "out"], ["out"], ["-c", "k=poly,d=3", "out"]),
        (["--both", "{degree}", "{coef}"], [], ["--both", "3", "-0.25"]),
        (["--both", "{lr}", "{coef}"], ["--both", "1e-05"], ["--both", "0.5", "-0.25"]),
        (["--both", "{degree}", "{lr}"], ["1e-05"], ["--both", "3", "0.5"]),
        (["--degree", "{degree}", "file"], ["file"], ["--degree", "3", "file"]),
        (["--flag", "file", "{degree}"], ["--flag", "file"], ["--flag", "file", "3"]),
        (["-1", "{degree}"], ["-1"], ["-1", "3"]),
        (["--", "{degree}"], ["--"], ["--", "3"]),
        (["a b; rm *", "$HOME", ""], ["a b; rm *", "$HOME", ""], ["a b; rm *", "$HOME", ""]),
        (["{{}}", "{{lr}}", "{{{lr}}}"], ["{}", "{lr}", "{1e-05}"], ["{}", "{lr}", "{0.5}"]),
        (["run-{trial}"], ["run-7"], ["run-7"]),
    ],
)
def test_arguments_by_hand(command, rbf, poly):
    for params, expected in ((RBF, rbf), (POLY, poly)):
        assert parse(["run", *command, "--rest", "{params}"], SPACE).fill(params, 7) == [
            "run", *expected, "--rest", json.dumps(params),
        ]  # fmt: skip


def test_values_as_text():
    choices = ["rbf", 1, 0.5, True, None, "true", "a b"]
    space = Space({"c": Categorical(choices), "b": Bool(), "trial": Int(1, 9)})
    command = parse(["run", "{c}", "{b}", "{trial}"], space)
    texts = [command.fill({"c": choice, "b": False, "trial": 5}, 7)[1:] for choice in choices]
    written = ["rbf", "1", "0.5", "true", "null", "true", "a b"]
    assert texts == [[text, "false", "5"] for text in written]  # {trial} is the hyperparameter of that name here
    space = Space({"c": Categorical(["a", "b\0"])})
    assert json.loads(parse(["run", "{params}"], space).fill({"c": "b\0"}, 0)[1]) == {"c": "b\0"}


def parsed(*command, space=SPACE):
    return lambda: parse(command, space)


test_refused = error_table(
    ConfigError,
    (parsed(), "must follow `--`"),
    (parsed(""), "must follow `--`"),
    (parsed("run", "{lr}"), "{kernel} is missing"),
    *((parsed("run", REST, place), f"got '{place}'") for place in ("{gamma}", "{}", "{ lr}", "a{", "}a", "{lr")),
    (parsed("run", REST, "{print $1}"), "doubled"),
    (parsed("{degree}", REST), "may be inactive"),
    (parsed("run", REST, "a\0"), "without NUL"),
    (parsed("run", REST, "\ud800"), "without NUL"),
    (parsed("run", "{c}", space=Space({"c": Categorical(["a", "b\0"])})), "without NUL"),
)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), max_size=4))
def test_text_reaches_the_program_as_it_is(arguments):
    """Braces doubled come back single; nothing else is touched."""
    doubled = [text.replace("{", "{{").replace("}", "}}") for text in arguments]
    assert parse(["run", *doubled, "{params}"], SPACE).fill(RBF, 0)[1:-1] == arguments
