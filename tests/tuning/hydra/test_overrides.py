"""Search spaces from overrides, with Hydra's own parser."""

import pytest

from dre_jax import Categorical, Float, Int
from dre_jax.errors import ConfigError
from tests.error_messages import raises_line

pytest.importorskip("hydra", reason="hydra-core is not installed: pip install 'dre_jax[hydra]'")
from hydra.core.override_parser.overrides_parser import OverridesParser

from dre_jax.tuning.hydra.overrides import parse_overrides


def values_of_hydra(override):
    """The values that Hydra's own sweeper takes, as text."""
    return list(OverridesParser.create().parse_override(override).sweep_string_iterator())


@pytest.mark.parametrize(
    ("override", "parameter"),
    [
        ("x=interval(0, 1.5)", Float(0.0, 1.5)),
        ("x=interval(1, 8)", Float(1.0, 8.0)),
        ("x=tag(log, interval(1e-5, 0.1))", Float(1e-5, 0.1, log=True)),
        ("x=tag(log, int(interval(1, 128)))", Int(1, 128, log=True)),
        ("x=int(interval(1, 8))", Int(1, 8)),
        ("x=range(1, 9)", Int(1, 8)),
        ("x=range(0, 10, 3)", Int(0, 9, step=3)),
        ("x=range(0.0, 1.0, 0.25)", Float(0.0, 0.75, step=0.25)),
        ("x=range(5, 1, -2)", Categorical([5, 3])),
        ("x=choice(sgd, adam)", Categorical(["sgd", "adam"])),
        ("x=1,2.5,true,null", Categorical([1, 2.5, True, "null"])),
        ("x='a b','c,d'", Categorical(["'a b'", "'c,d'"])),
        ("x=choice('a b',[1,2],{k:1})", Categorical(["a\\ b", "[1,2]", "{k:1}"])),
    ],
)
def test_a_sweep_is_a_hyperparameter(override, parameter):
    assert parse_overrides([override]).space["x"] == parameter


@pytest.mark.parametrize(
    "sweep",
    [
        "range(1, 9, 2)",
        "range(3)",
        "range(0.0, 1.0, 0.25)",
        "range(5, 1, -2)",
        "range(1, 2)",
        "shuffle(range(1, 6))",
        "1,2.5,true,null",
        "'a b','c,d',x",
        "choice('a b','c,d','e=f',[1,2],{k:1})",
    ],
)
def test_jobs_have_the_values_of_hydras_own_sweeper(sweep):
    parser, overrides = OverridesParser.create(), parse_overrides([f"x={sweep}"])
    expected = [parser.parse_override(f"x={text}").value() for text in values_of_hydra(f"x={sweep}")]
    points = overrides.space.layout.all_points()
    jobs = [overrides.job(overrides.space.params(point)) for point in points]
    values = [parser.parse_override(job).value() for (job,) in jobs]
    assert sorted(map(repr, values)) == sorted(map(repr, expected))


def test_overrides_of_a_job():
    overrides = parse_overrides(
        ["+opt.lr=interval(0.0, 1.0)", "db=mysql", "++seed=3", "~debug"],
        {"depth": "range(1, 4)", "db": "choice(a, b)", "batch": 32},
    )
    assert list(overrides.space) == ["depth", "+opt.lr"]
    job = overrides.job({"depth": 2, "+opt.lr": 0.5})
    assert job == ("depth=2", "+opt.lr=0.5", "db=mysql", "batch=32", "++seed=3", "~debug")


def test_what_is_no_search_space():
    for overrides, words in (
        (["x=glob(*)"], "x: a search space is a choice, a range or an interval, but got glob(*)"),
        (["x=interval(2.0, 1.0)"], "x: "),
        (["x=3"], "a sweep needs an override with a search space"),
        ([], "but got none"),
    ):
        with raises_line(ConfigError, words):
            parse_overrides(overrides)
