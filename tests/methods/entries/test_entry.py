"""What a method declares is checked when it is looked up or registered, with one error."""

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dre_jax.errors import CheckpointError, ConfigError, DataWarning
from dre_jax.methods import DRE, METHODS, Entry, RandomSearch, find, register
from dre_jax.methods.checkpoints.parameters import abstract_params, check_storable
from dre_jax.methods.entries.settings import config_to_json
from dre_jax.methods.registry import entry_of, known_entries
from dre_jax.search import Candidates, Capabilities, make_history
from dre_jax.search.method import (
    OPTIONAL_PROTOCOLS,
    AbstractParamsMethod,
    ExplainingMethod,
    FeatureMethod,
    HistoryMethod,
    PaddingMethod,
    PastWeighingMethod,
    PosteriorMethod,
    SamplingMethod,
    as_padding,
    decisions_of,
    value,
)
from dre_jax.tuning import Evaluated, Float, Space, Surrogate, past_of
from tests.error_messages import raises_line


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of past tasks' responses."""

    scale: float = 1.0

    def fit(self, meta, key):
        return {"mean": jnp.float32(self.scale * sum(float(task.y.mean()) for task in meta.train.values()))}

    def acquire(self, params, history, candidates, key):
        return params["mean"] + candidates.x[:, 0]


class Forgetful(Mean):
    def fit(self, meta, key):
        return None


ENTRY = Entry(name="mean", summary="the mean", paper="this test", default=Mean(), free=("scale",))

pytestmark = pytest.mark.usefixtures("registries")
TASKS = {"a": [Evaluated({"x": x / 4}, x / 4) for x in range(5)]}
PAST = past_of(Space({"x": Float(0.0, 1.0)}), TASKS, direction="maximize")


def altered(**attributes):
    """A method with other attributes."""
    return type("Altered", (Mean,), attributes)()


def declaring(**values):
    """A method with capabilities, and other attributes."""
    names = {field.name for field in fields(Capabilities)}
    capabilities = Capabilities(**{name: value for name, value in values.items() if name in names})
    return altered(capabilities=capabilities, **{name: value for name, value in values.items() if name not in names})


@dataclass(frozen=True)
class Slotwise(Mean):
    """Needs a function that it does not have, by its configuration alone."""

    slotwise: bool = False

    @property
    def capabilities(self):
        return Capabilities(slotwise_fit=self.slotwise)


class Unreadable(Mean):
    @property
    def capabilities(self):
        return Capabilities(transfer=self.misspelled)


class Scale(NamedTuple):
    shift: Array


class Weights(NamedTuple):
    """What methods learn here: an array, and another named tuple."""

    mean: Array
    scale: Scale | None


def learning(learned, **attributes):
    """A method whose `fit` returns something."""
    acquire = lambda self, params, history, candidates, key: candidates.x[:, 0]  # noqa: E731
    return altered(fit=lambda self, meta, key: learned, acquire=acquire, **attributes)


@dataclass
class Mutable:
    fit, acquire = Mean.fit, Mean.acquire


class Plain:
    fit, acquire = Mean.fit, Mean.acquire


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"default": None}, "must have either default= or host=, but has neither"),
        ({"host": SimpleNamespace}, "must have either default= or host=, but has both"),
        ({"default": None, "host": Plain}, "the class must have a method observe_and_suggest"),
        ({"default": Mean}, "default= must be an object, but is the class Mean"),
        ({"default": altered(fit=None)}, r"must have a function fit\(meta, key\), but has none"),
        ({"default": altered(acquire=3)}, r"must have a function acquire\(params, history, candidates, key\), but"),
        ({"default": altered(capabilities={"transfer": True})}, r"must be Capabilities\(...\), but are {'transfer"),
        ({"default": Unreadable()}, r"Unreadable must be .* but cannot be read: .* no attribute 'misspelled'"),
        ({"default": declaring(differentiable="yes")}, "differentiable must be True or False, but is 'yes'"),
        (
            {"default": declaring(slotwise_fit=True)},
            r"slotwise_fit is True, so .* a function fit_history\(params, hist",
        ),
        ({"default": altered(sample_posterior=3)}, r"a function sample_posterior\(params, .*\), but .* is 3"),
        ({"default": altered(fit_history=lambda self, *_: 0)}, r"fit_history, so .* score_candidates\(fitted_.* none"),
        ({"default": altered(past_weight=lambda self, f: 1.0)}, r"has past_weight, so it must .* fit_history\("),
        ({"default": altered(predict_components=lambda self, *_: 0)}, r"has predict_components, so .* noise_deviat"),
        ({"default": Mutable()}, "must be a frozen dataclass with hashable fields, but has unhashable type"),
        ({"default": Plain()}, "must be a frozen dataclass, but Plain is no dataclass"),
        ({"free": ("scale", "step")}, "free= must name fields of the method, but has step"),
        ({"name": "gp"}, "a method must have a name of its own, but 'gp' is registered already"),
    ],
)
def test_invalid_entries(fields, message):
    with pytest.raises(ConfigError, match=message):
        register(replace(ENTRY, **fields))
    assert "mean" not in METHODS


def test_attributes_without_a_declaration_are_the_methods_own():
    """A method with `fit` and `acquire` needs no declaration, and None in place of a function is no function."""
    capabilities = {field.name: True for field in fields(Capabilities)}
    functions = {name: None for protocol in OPTIONAL_PROTOCOLS for name in vars(protocol) if not name.startswith("_")}
    method = altered(**capabilities, **functions)
    assert not any(isinstance(method, protocol) for protocol in OPTIONAL_PROTOCOLS)
    register(replace(ENTRY, default=method))
    history, key = make_history(jnp.zeros((1, 2)), jnp.zeros(1), 1), jax.random.key(0)
    candidates = Candidates(jnp.eye(2), jnp.ones(2, bool))
    assert value(method, {"mean": 1.0}, history, candidates, key).tolist() == [2.0, 1.0]
    assert decisions_of(method, None) == {}


def test_a_field_of_an_older_checkpoint_has_another_name_now():
    entry = find("hedged-prior")
    content = config_to_json(entry.default)
    assert entry.restore(content) == entry.default
    del content["processes"]["interpolation"]
    content["common"]["interpolation"] = 0.25
    assert entry.restore(content) == entry.make({"processes.interpolation": 0.25})
    content["common"]["other"] = 1.0
    with raises_line(ConfigError, "hedged-prior takes", "common.other"):
        entry.restore(content)


def test_capabilities_are_checked_for_each_configuration():
    register(replace(ENTRY, default=Slotwise()))
    for make in (lambda: find("mean").make({"slotwise": True}), lambda: entry_of(Slotwise(slotwise=True))):
        with pytest.raises(ConfigError, match=r"slotwise_fit.* fit_history"):
            make()


def test_which_methods_follow_an_optional_protocol():
    """A misspelled function would take an ability from a method without an error."""
    methods = {name: entry.default for name, entry in METHODS.items() if entry.default is not None}
    followers = {
        protocol: {name for name, method in methods.items() if isinstance(method, protocol)}
        for protocol in OPTIONAL_PROTOCOLS
    }
    mixtures, ensembles = {"hedged-prior", "gp-mixture"}, {name for name in methods if isinstance(methods[name], DRE)}
    others = {"fsbo", "dklm", "rgpe", "tst", "taf", "gcp", "gcp-ts", "empirical-gp"}
    assert followers == {
        HistoryMethod: mixtures | {"gp"} | ensembles,
        PosteriorMethod: mixtures | {"gp"},
        SamplingMethod: mixtures | ensembles,
        PastWeighingMethod: {"hedged-prior"},
        PaddingMethod: {"hedged-prior"} | ensembles,
        FeatureMethod: {"hedged-prior"},
        AbstractParamsMethod: {"hedged-prior"} | ensembles | others,
        ExplainingMethod: {"hedged-prior"},
    }
    learned = {name for name in ensembles if METHODS[name].transfer}
    assert {name for name, method in methods.items() if as_padding(method)} == {"hedged-prior"} | learned


def test_the_entry_and_the_configuration_of_a_registered_method():
    register(ENTRY)
    register(ENTRY)
    assert find("mean") is ENTRY
    instance = find("mean").make({"scale": "2"})
    assert instance == Mean(scale=2.0)
    assert entry_of(RandomSearch()) is METHODS["random"]
    instance = find("dre").make({"fine_tuning.epochs": 7})
    assert (entry_of(instance).name, entry_of(instance).default, entry_of(instance).free) == (
        "dre",
        instance,
        METHODS["dre"].free,
    )
    assert not entry_of(find("dre").make({"transfer": False})).transfer
    assert entry_of(Mean()) is ENTRY


PACKAGE = """
from tests.methods.entries.test_entry import ENTRY, Mean
from dataclasses import dataclass, replace

@dataclass(frozen=True, kw_only=True)
class Median(Mean):
    pass

MEDIAN = replace(ENTRY, name="median", default=Median(), transfer=True)
"""


def test_entry_points(install, tmp_path):
    """Of a distribution that is installed; no look-up registers anything."""
    points = {"median": "MEDIAN", "missing": "NOTHING", "other": "MEDIAN", "number": "__name__"}
    install("their_package", PACKAGE, "dre_jax.methods", points)
    before = dict(METHODS)
    entry = find("median")
    assert (entry.name, type(entry.default).__module__) == ("median", "their_package")
    assert entry_of(entry.make({"scale": 2.0})).name == "median"
    with pytest.raises(ConfigError, match=r"their_package:NOTHING .*AttributeError"):
        find("missing")
    with pytest.raises(ConfigError, match=r"'other', .*Entry\(name='median'"):
        find("other")
    with pytest.raises(ConfigError, match="their_package:__name__ must be an Entry, but is 'their_package'"):
        find("number")
    with pytest.raises(ConfigError, match=r"did you mean missing\?"):
        find("misssing")
    with pytest.warns(DataWarning) as caught:
        names = [entry.name for entry in known_entries()]
    assert len(caught) == 3
    assert names == [*before, "median"]
    Surrogate.fit(PAST, method="median").save(tmp_path / "one")
    assert type(Surrogate.load(tmp_path / "one").method) is type(entry.default)
    assert before == METHODS


def test_two_packages_with_one_name(install):
    for package in ("their_package", "another_package"):
        install(package, PACKAGE, "dre_jax.methods", {"median": "MEDIAN"})
    with raises_line(ConfigError, "another_package:MEDIAN must have a name of its own, but their_package:MEDIAN"):
        find("median")


def test_a_look_up_registers_nothing(tmp_path):
    (tmp_path / "mean.py").write_text(f"from {__name__} import Mean\n")
    before = dict(METHODS)
    entry, of_object = find(f"{tmp_path / 'mean.py'}:Mean"), entry_of(Mean())
    assert (entry.name, of_object.name) == ("mean.py:Mean", f"{__name__}:Mean")
    assert before == METHODS
    with pytest.raises(CheckpointError, match="must be registered"):
        check_storable(entry.name, entry.default, {"mean": np.ones(1)}, 1)
    register(entry)
    register(replace(entry, summary="edited"))  # another entry of the file's name
    assert METHODS["mean.py:Mean"].summary == "edited"


def test_a_checkpoint_of_a_method_that_is_not_registered(tmp_path):
    surrogate = Surrogate.fit(PAST, method=Mean())
    surrogate.save(tmp_path)
    METHODS.pop(surrogate.name)  # as in another process
    with raises_line(CheckpointError, f"call register(find('{surrogate.name}'))"):
        Surrogate.load(tmp_path)
    register(find(surrogate.name))
    assert Surrogate.load(tmp_path).method == Mean()


def test_a_surrogate_of_an_object(tmp_path):
    surrogate = Surrogate.fit(PAST, method=Mean(scale=3.0))
    assert (surrogate.name, surrogate.method) == (entry_of(Mean()).name, Mean(scale=3.0))
    surrogate.save(tmp_path)
    read = Surrogate.load(tmp_path)
    assert read.method == surrogate.method
    assert jax.tree.all(jax.tree.map(jnp.array_equal, read.params, surrogate.params))
    with pytest.raises(ConfigError, match=r"Forgetful does not"):
        Surrogate.fit(PAST, method=Forgetful())


def test_any_tree_can_be_stored(tmp_path):
    """Nobody has to list its classes, whose names need not be unique."""
    learned = (Weights(np.ones(2, np.float32), Scale(np.zeros(1, np.float32))), {"a": [np.ones(3, np.int32), None]})
    for tree in (learned, type("Weights", (Scale,), {})(np.ones(1, np.float32)), np.ones(3, np.float32)):
        surrogate = Surrogate.fit(PAST, method=learning(tree))
        surrogate.save(tmp_path)
        read = Surrogate.load(tmp_path).params
        assert jax.tree.structure(read) == jax.tree.structure(tree)
        jax.tree.map(np.testing.assert_array_equal, read, tree)


def on_the_host(self, meta, key):
    return {"seed": np.asarray(jax.random.key_data(key)), "scale": None}


def test_a_fit_that_cannot_be_traced(tmp_path):
    method = altered(fit=on_the_host)
    with pytest.raises(CheckpointError, match=r"Altered.fit .*: add a function abstract_params"):
        abstract_params(method, 2)
    shapes = {"seed": np.zeros(2, np.uint32), "scale": {"length": np.zeros(3)}}
    acquire = lambda self, params, history, candidates, key: candidates.x[:, 0]  # noqa: E731
    functions = {"fit": on_the_host, "acquire": acquire, "abstract_params": lambda self, n: shapes}
    surrogate = Surrogate.fit(PAST, method=altered(**functions))
    surrogate.save(tmp_path)
    assert Surrogate.load(tmp_path).params["seed"].tolist() == [0, 0]
    assert Surrogate.load(tmp_path).params["scale"] is None
    two = np.ones(2)
    for learned in ({"seed": two, "scale": two}, {"seed": two}, [two], {"seed": two[None], "scale": None}):
        with pytest.raises(CheckpointError, match="arrays differ"):
            check_storable(surrogate.name, surrogate.method, learned, 1)


def test_arrays_of_one_path_are_refused():
    learned = {"a.b": np.ones(1), "a": {"b": np.zeros(1)}}
    method = learning(learned)
    register(entry_of(method))
    with pytest.raises(CheckpointError, match="fit must return the tree of abstract_params"):
        check_storable(entry_of(method).name, method, learned, 1)


def test_a_surrogate_that_cannot_be_saved():
    with pytest.warns(DataWarning, match=r"Altered cannot be saved: the configuration"):
        Surrogate.fit(PAST, method=replace(learning({"a": np.ones(2)}), scale=abs))
    with pytest.warns(DataWarning, match=r"cannot be saved: a checkpoint needs the tree"):
        Surrogate.fit(PAST, method=altered(fit=on_the_host))
    for unusable in (object(), jax.random.key(0)):
        with pytest.raises(ConfigError, match=r"Altered returns"):
            Surrogate.fit(PAST, method=learning({"a": unusable}))
