import pytest

from dre_jax.errors import ConfigError
from dre_jax.model import ModelConfig


@pytest.mark.parametrize(("context", "width"), [("own", 9), ("shared", 9), ("none", 6)])
def test_the_width_of_a_scorers_input(context, width):
    assert ModelConfig(context=context, rho=(8, 3)).scorer_inputs(6) == width


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"members": 0}, "members >= 1 must hold, but got members=0"),
        ({"hidden": ()}, r"hidden must list positive layer sizes, but got hidden=\(\)"),
        ({"phi": (8, 0)}, r"phi must list positive layer sizes, but got phi=\(8, 0\)"),
        ({"rho": (-1,)}, r"rho must list positive layer sizes, but got rho=\(-1,\)"),
        ({"context": "each"}, "context must be one of own, shared, none, but got 'each'"),
        ({"response_scale": "task"}, "response_scale must be one of .*, but got 'task'"),
        ({"initialiser": "zeros"}, "initialiser must be one of .*, but got 'zeros'"),
        ({"range_limit": 0.0}, r"range_limit > 0 must hold, but got range_limit=0\.0"),
    ],
)
def test_a_wrong_value_is_named(wrong, message):
    with pytest.raises(ConfigError, match=message):
        ModelConfig(**wrong)
