"""What a method declares is checked when it is registered, with one error."""

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from dre_jax.errors import ConfigError, DataWarning
from dre_jax.methods import METHODS, Entry, find, register, registry
from dre_jax.methods.baselines.random_search import RandomSearch
from dre_jax.methods.checkpoints.serialization import config_from_json, config_to_json
from dre_jax.methods.registry import CONFIGURATIONS, entry_of, load_entry_points
from dre_jax.tuning import Evaluated, Float, Space, Surrogate, past_of


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


@pytest.fixture(autouse=True)
def registries():
    """Leaves the registries as they were."""
    before = dict(METHODS), dict(CONFIGURATIONS)
    yield
    for table, content in zip((METHODS, CONFIGURATIONS), before, strict=True):
        table.clear()
        table.update(content)


def altered(**attributes):
    """A method with other attributes."""
    return type("Altered", (Mean,), attributes)()


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
        ({"default": altered(fit=lambda self, meta: 0)}, r"fit must take \(meta, key\), but takes \(meta\)"),
        ({"default": altered(draw=3)}, "draw must be a function, but is 3"),
        ({"default": altered(widen=lambda self, params: params)}, r"widen must take \(params, n_columns, width\)"),
        ({"default": altered(differentiable="yes")}, "differentiable must be True or False, but is 'yes'"),
        ({"default": altered(stateful=True)}, "stateful is True, so it must have begin and advance"),
        ({"default": Mutable()}, "must be a frozen dataclass with hashable fields, but has unhashable type"),
        ({"default": Plain()}, "must be a frozen dataclass, but Plain is no dataclass"),
        ({"free": ("scale", "step")}, "free= must name fields of the method, but has step"),
        ({"name": "gp"}, "a method must have a name of its own, but 'gp' is registered already"),
        ({"name": "recommended"}, "'recommended' is registered already"),
        ({"default": type("RandomSearch", (Mean,), {})()}, "RandomSearch is the name of a class of dre_jax.methods"),
    ],
)
def test_what_is_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        register(Entry(**{**vars(ENTRY), **fields}))
    assert "mean" not in METHODS


def test_a_registered_method_has_its_name_and_its_configuration_everywhere():
    register(ENTRY)
    register(ENTRY)
    assert find("mean") is ENTRY
    made = find("mean").make({"scale": "2"})
    assert config_from_json(config_to_json(made)) == made == Mean(scale=2.0)


def test_the_entry_of_an_object():
    assert entry_of(RandomSearch()) is METHODS["random"]
    made = find("dre").make({"fine_tuning.epochs": 7})
    assert (entry_of(made).name, entry_of(made).default, entry_of(made).free) == ("dre", made, METHODS["dre"].free)
    assert not entry_of(find("dre").make({"transfer": False})).transfer
    assert entry_of(Mean()).name in METHODS


@pytest.fixture
def points(monkeypatch):
    """Entry points as installed packages would have them."""

    def install(**values):
        found = EntryPoints(EntryPoint(name, value, "dre_jax.methods") for name, value in values.items())
        monkeypatch.setattr(registry, "entry_points", found.select)

    return install


def test_entry_points(points, monkeypatch):
    module = SimpleNamespace(ENTRY=ENTRY)
    monkeypatch.setitem(sys.modules, "their_package", module)
    points(mean="their_package:ENTRY", missing="their_package:NOTHING", other="their_package:ENTRY")
    assert find("mean") is ENTRY
    with pytest.raises(ConfigError, match="entry point their_package:NOTHING cannot be loaded: AttributeError"):
        find("missing")
    with pytest.raises(ConfigError, match="must be the Entry of 'other', but is that of 'mean'"):
        find("other")
    with pytest.raises(ConfigError, match=r"did you mean missing\?"):
        find("misssing")
    METHODS.pop("mean")
    with pytest.warns(DataWarning) as caught:
        load_entry_points()
    assert len(caught) == 2
    assert "mean" in METHODS


def test_a_surrogate_of_an_object(tmp_path):
    space = Space({"x": Float(0.0, 1.0)})
    past = past_of(space, {"a": [Evaluated({"x": x / 4}, x / 4) for x in range(5)]})
    surrogate = Surrogate.fit(past, method=Mean(scale=3.0))
    assert (surrogate.name, surrogate.method) == (entry_of(Mean()).name, Mean(scale=3.0))
    surrogate.save(tmp_path)
    read = Surrogate.load(tmp_path)
    assert read.method == surrogate.method
    assert jax.tree.all(jax.tree.map(jnp.array_equal, read.params, surrogate.params))
    with pytest.raises(ConfigError, match=r"must learn from past tasks, but .*Forgetful does not"):
        Surrogate.fit(past, method=Forgetful())
