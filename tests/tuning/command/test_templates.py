"""Commands with places for hyperparameters."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre_jax import Bool, Categorical, ConfigError, Float, Int, Space, Trial
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
        assert parse(["run", *command, "--rest", "{params}"], SPACE).fill(Trial(7, params)) == [
            "run", *expected, "--rest", json.dumps(params),
        ]  # fmt: skip


def test_values_as_text():
    choices = ["rbf", 1, 0.5, True, None, "true", "a b"]
    space = Space({"c": Categorical(choices), "b": Bool(), "trial": Int(1, 9)})
    command = parse(["run", "{c}", "{b}", "{trial}"], space)
    texts = [command.fill(Trial(7, {"c": choice, "b": False, "trial": 5}))[1:] for choice in choices]
    written = ["rbf", "1", "0.5", "true", "null", "true", "a b"]
    assert texts == [[text, "false", "5"] for text in written]  # {trial} is the hyperparameter of that name here
    space = Space({"c": Categorical(["a", "b\0"])})
    assert json.loads(parse(["run", "{params}"], space).fill(Trial(0, {"c": "b\0"}))[1]) == {"c": "b\0"}


def test_budgets_and_checkpoints():
    """Whole numbers without a point, and folders that are the same wherever the program works."""
    command = parse(["run", "{budget}", "-c={checkpoint}", "{params}"], SPACE, has_fidelity=True)
    assert command.has_checkpoint
    for budget, text in ((3, "3"), (3.0, "3"), (1e6, "1000000"), (0.125, "0.125")):
        trial = Trial(0, RBF, budget=budget, checkpoint=Path("runs") / "4")
        assert command.fill(trial)[1:3] == [text, f"-c={os.getcwd()}/runs/4"]
    space = Space({"budget": Int(1, 9), "checkpoint": Categorical(["a", "b"])})
    without = parse(["run", "{budget}", "{checkpoint}"], space)  # names like any other, without a fidelity
    assert without.fill(Trial(0, {"budget": 7, "checkpoint": "b"})) == ["run", "7", "b"]
    assert not without.has_checkpoint


def parsed(*command, space=SPACE, **options):
    return lambda: parse(command, space, **options)


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
    (parsed("run", REST, "{budget}"), "{budget} needs a study with a fidelity: pass --fidelity"),
    (parsed("run", REST, "{checkpoint}"), "{checkpoint} needs a study with a fidelity: pass --fidelity"),
    (parsed("run", REST, "{checkpoint}", has_fidelity=True), "must name {budget}, but does not"),
    *(
        (parsed("run", "{budget}", "{params}", space=Space({name: Bool()}), has_fidelity=True), f"called {name!r}")
        for name in ("budget", "checkpoint")
    ),
    (parsed("run", "{c}", space=Space({"c": Categorical(["a", "b\0"])})), "without NUL"),
)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), max_size=4))
def test_text_reaches_the_program_as_it_is(arguments):
    """Braces doubled come back single; nothing else is touched."""
    doubled = [text.replace("{", "{{").replace("}", "}}") for text in arguments]
    assert parse(["run", *doubled, "{params}"], SPACE).fill(Trial(0, RBF))[1:-1] == arguments
