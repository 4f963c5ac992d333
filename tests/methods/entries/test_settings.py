"""What a user can set of a method: short options, and every field by its dotted name."""

import dataclasses
import inspect
import re

import pytest

from dre_jax import AcquisitionConfig, ConfigError, FineTuneConfig
from dre_jax.methods import DRE, METHODS
from dre_jax.methods.baselines.tpe import TPE
from dre_jax.methods.entries.settings import configure, convert, leaves, parse, to_text
from dre_jax.methods.foreign import arguments_of
from tests.error_messages import raises_line

COMPILED = {name: entry for name, entry in METHODS.items() if entry.host is None}
SHORT = {"epochs": 7, "learning_rate": 0.0123, "acquisition": "pi"}
FEWER = {
    "dre-no-finetune": {"acquisition"},
    "hedged-prior": {"acquisition"},
    "gp-mixture": {"acquisition"},
    "bohamiann": {"learning_rate", "acquisition"},
    "random": set(),
    "gcp-ts": set(),
    "empirical-gp": set(),
    **{name: {"epochs", "learning_rate"} for name in ("metis", "hebo", "taf")},
}


def flat(value, path=()):
    """Fields of fields, by `dataclasses` alone."""
    if dataclasses.is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        parts = {str(i): part for i, part in enumerate(value)}
    else:
        return {".".join(path): value}
    return {name: leaf for field, part in parts.items() for name, leaf in flat(part, (*path, field)).items()}


@pytest.mark.parametrize("name", COMPILED)
def test_every_field_and_short_option_can_be_set(name):
    entry = COMPILED[name]
    fields = flat(entry.default)
    assert dict(leaves(entry.default)) == fields
    for argument in (fields, {field: to_text(value) for field, value in fields.items()}):
        assert entry.make(argument) == entry.default
        assert all(entry.make({field: value}) == entry.default for field, value in argument.items())
    assert set(entry.options) == FEWER.get(name, set(SHORT))
    for short, value in SHORT.items():
        if short not in entry.options:
            with pytest.raises(ConfigError, match=f"{name} takes .*, but got '{short}'"):
                entry.make({short: value})
            continue
        changed = {field for field, now in flat(entry.make({short: str(value)})).items() if now != fields[field]}
        assert changed == set(entry.options[short])


def test_a_set_of_changes():
    texts = ["acquisition.beta=2", "fine_tuning.epochs=10", "model.hidden=8, 4", "training.patience=3"]
    result = METHODS["dre"].make(parse(texts))
    assert result.acquisition == AcquisitionConfig(kind="lcb", beta=2.0)
    assert result.fine_tuning == FineTuneConfig(epochs=10)
    assert (result.model.hidden, result.training.patience) == ((8, 4), 3)
    assert flat(result) == flat(DRE()) | {
        "acquisition.beta": 2.0, "fine_tuning.epochs": 10, "model.hidden": (8, 4), "training.patience": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("random", {"epochs": 3}, "random takes no settings, but got 'epochs'"),
        ("dre", {"epoch": 3}, "dre takes epochs, learning_rate, acquisition, model.*, training.*, fine_tuning.*, "
         "acquisition.*, transfer, but got 'epoch' (did you mean epochs?)"),
        ("gp", {"fitting.step": 3}, "gp takes fitting.optimiser, fitting.steps, fitting.learning_rate, "
         "fitting.first_lengths, fitting.priors, fitting.first_log_noises, fitting.log_noise_prior, "
         "fitting.least_noise, fitting.kernel, fitting.density_of, but got 'fitting.step' "
         "(did you mean fitting.steps?)"),
        ("dre", {"fine_tuning": 3}, "but got 'fine_tuning'"),
        ("hedged-prior", {"hypotheses.9.slope_mean": 3}, "takes hypotheses.0.*, hypotheses.1.*, "),
        ("dre", {"epochs": 3, "fine_tuning.epochs": 4},
         "dre: fine_tuning.epochs must be set once, but got epochs and fine_tuning.epochs"),
        ("dre", {"fine_tuning.epochs": "many"}, "dre: fine_tuning.epochs must be a whole number, but got 'many'"),
        ("dre", {"acquisition.beta": "inf"}, "must be a number, but got 'inf'"),
        ("dre", {"transfer": "maybe"}, "dre: transfer must be true or false, but got 'maybe'"),
        ("dre", {"model.context": "x"}, "must be one of own, shared, none, but got 'x'"),
        ("dre", {"model.hidden": "32,x"}, "must be any number of values separated by commas, each a whole number"),
        ("gp", {"fitting.first_lengths": (1.0,)}, "must be 2 values separated by commas, each a number, but got (1"),
        ("dre", {"training.patience": "x"}, "must be a whole number or none, but got 'x'"),
    ],
)  # fmt: skip
def test_invalid_settings(name, settings, message):
    with raises_line(ConfigError, message):
        METHODS[name].make(settings)


@pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if entry.transfer])
def test_fields_that_fit_reads_are_the_checkpoints(name):
    """The fields that the source of `fit` reads are those that cannot be set where a checkpoint has been read."""
    entry = METHODS[name]
    fits = [inspect.getsource(kind.fit) for kind in type(entry.default).__mro__ if "fit" in vars(kind)]
    reads = set(re.findall(r"self\.(\w+)", "".join(fits)))
    assert reads
    for field in dataclasses.fields(entry.default):
        assert (field.name in entry.free) == (field.name not in reads), field.name
    for path, value in leaves(entry.default):
        if any(path.startswith(free) for free in entry.free):
            assert entry.make({path: value}, learned=entry.default) == entry.default
        else:
            with pytest.raises(ConfigError, match=f"the checkpoint .*{path}"):
                entry.make({path: value}, learned=entry.default)


def test_texts_and_an_object_without_fields():
    assert parse(["a.b=1=2", "c="]) == {"a.b": "1=2", "c": ""}
    for texts in (["a"], ["=1"]):
        with pytest.raises(ConfigError, match="must be FIELD=VALUE"):
            parse(texts)
    with pytest.raises(ConfigError, match="set once, but got a=1 and a=2"):
        parse(["a=1", "a=2"])
    with pytest.raises(ConfigError, match="it takes no settings, but got 'x'"):
        configure(object(), {"x": 1}, name="it")
    assert convert(str, "3", "x") == "3"


class Peer:
    def __init__(self, width, depth: int = 2, names: "Nowhere" = None, **more):  # noqa: F821
        pass


class Typed:
    def __init__(self, width, depth: int = 2, *, noise: float | None = None):
        pass


def test_arguments_of_a_host_method():
    assert arguments_of(Typed, {"width": "(1, 2)", "depth": "3", "noise": "none"}, "t") == {
        "width": (1, 2), "depth": 3, "noise": None,
    }  # fmt: skip
    assert arguments_of(Typed, {"width": "plain text"}, "t") == {"width": "plain text"}
    # Annotations that cannot be read leave literals of Python.
    assert arguments_of(Peer, {"depth": "2.5"}, "p") == {"depth": 2.5}
    with pytest.raises(ConfigError, match=r"t takes width, depth, noise, but got 'deth' \(did you mean depth\?\)"):
        arguments_of(Typed, {"deth": "3"}, "t")
    with pytest.raises(ConfigError, match="t: depth must be a whole number, but got 'x'"):
        arguments_of(Typed, {"depth": "x"}, "t")
    with pytest.raises(ConfigError, match="tpe takes multivariate, startup, but got '_n_shown'"):
        arguments_of(TPE, {"_n_shown": 3}, "tpe")
    with pytest.raises(ConfigError, match="object takes no settings"):
        arguments_of(type("Bare", (), {}), {"x": 3}, "object")
