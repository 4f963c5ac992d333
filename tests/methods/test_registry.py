"""Names of methods and what is said of them; what they do is in test_conformance.py."""

import jax
import pytest

from dre_jax import ConfigError, DataError, SearchSpace
from dre_jax.methods import METHODS, find
from dre_jax.methods.registry import ALIASES, real_name
from tests.error_messages import raises_line


@pytest.mark.parametrize("name", METHODS)
def test_entries(name):
    entry = METHODS[name]
    assert entry.summary
    assert entry.paper
    assert find(name) is entry
    assert (entry.host is None) != (entry.default is None)
    if entry.host is None:
        assert hash(entry.make()) == hash(entry.default)  # static under jit
        return
    assert callable(entry.host.observe_and_suggest)
    assert not entry.transfer
    assert entry.extra
    assert entry.library != "JAX"


def test_aliases_name_registered_methods():
    assert find("recommended") is METHODS["hedged-prior"]
    assert not set(ALIASES) & set(METHODS)
    assert all(METHODS[real_name(alias)].transfer for alias in ALIASES)


@pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if entry.transfer])
def test_methods_that_learn_need_past_tasks(name):
    with pytest.raises(DataError, match="meta-training needs training tasks, but search space 'none' has none"):
        METHODS[name].make().fit(SearchSpace("none"), jax.random.key(0))


@pytest.mark.parametrize(
    ("unknown", "suggested"),
    [("dree", "dre"), ("radnom", "random"), ("recomended", "recommended"), ("Dre-RI", None), ("", None)],
)
def test_an_unknown_name(unknown, suggested):
    with raises_line(ConfigError, repr(unknown), *METHODS, f"did you mean {suggested}?" if suggested else ""):
        find(unknown)
