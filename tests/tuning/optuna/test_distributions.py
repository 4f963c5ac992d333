"""Spaces as distributions, and back."""

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from dre_jax import Bool, Categorical, ConfigError, Float, Int, Space
from dre_jax.tuning.optuna import from_optuna, to_optuna
from dre_jax.tuning.optuna.distributions import translation_of
from tests.tuning.conftest import examples

SPACE = Space(
    {
        "C": Float(1e-3, 1e3, log=True),
        "dropout": Float(0.0, 0.7, step=0.1),
        "depth": Int(1, 9, step=2),
        "units": Int(8, 512, log=True),
        "kernel": Categorical(["rbf", "poly", None, 2]),
        "shrink": Bool(),
        "fixed": Int(3, 3),
    }
)


def test_a_space_is_its_distributions():
    assert to_optuna(SPACE) == {
        "C": FloatDistribution(1e-3, 1e3, log=True),
        "dropout": FloatDistribution(0.0, 0.7, step=0.1),
        "depth": IntDistribution(1, 9, step=2),
        "units": IntDistribution(8, 512, log=True),
        "kernel": CategoricalDistribution(["rbf", "poly", None, 2]),
        "shrink": CategoricalDistribution([False, True]),
        "fixed": IntDistribution(3, 3),
    }
    back = from_optuna(to_optuna(SPACE))
    assert {name: back[name] for name in back if name != "shrink"} == {n: SPACE[n] for n in SPACE if n != "shrink"}


@pytest.mark.parametrize(
    "distribution",
    [CategoricalDistribution(["a", "a"]), FloatDistribution(-1e308, 1e308), IntDistribution(0, 2**60), "float"],
)
def test_distributions_outside_of_spaces(distribution):
    with pytest.raises(ConfigError, match=r"^x\b"):
        from_optuna({"x": distribution})


def draw(distribution):
    """Values of a distribution by Optuna's own count."""
    if isinstance(distribution, CategoricalDistribution):
        return st.sampled_from(distribution.choices)
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is None:
        return st.floats(low, high)
    return st.integers(0, round((high - low) / step - 1e-6)).map(lambda k: low + k * step)


@examples(100)
@given(st.fixed_dictionaries({name: draw(d) for name, d in to_optuna(SPACE).items()}))
def test_values_go_in_and_out(values):
    translation = translation_of(to_optuna(SPACE))
    params = translation.read_params(values)
    assert params is not None
    assert translation.to_optuna_values(params) == pytest.approx(values)
    back = translation.to_optuna_values(params)
    assert translation.from_numbers(translation.to_numbers(back)) == back


def test_choices_of_any_type_keep_their_identity():
    class Kernel:
        pass

    kernels = (Kernel(), Kernel(), (3, 3), (5, 5))
    with pytest.warns(UserWarning, match="Choices for a categorical"):
        distribution = CategoricalDistribution(kernels)
    translation = translation_of({"kernel": distribution})
    for i, kernel in enumerate(kernels):
        assert translation.read_params({"kernel": kernel}) == {"kernel": i}
        assert translation.to_optuna_values({"kernel": i})["kernel"] is kernel


def test_a_narrower_range_keeps_its_likely_values():
    space = Space(
        {
            "x": Float(0.0, 1.0, likely=(0.2, 0.6), default=0.3),
            "y": Float(0.0, 1.0, likely=(0.0, 0.1), default=0.3),
            "k": Categorical(["a", "b", "c"], likely=["a", "b"], default="c"),
        }
    )
    ranges = {"x": FloatDistribution(0.0, 0.5), "y": FloatDistribution(0.2, 1.0)}
    result = translation_of(space).restrict({**ranges, "k": CategoricalDistribution(["a", "c"])}).space
    assert result["x"] == Float(0.0, 0.5, likely=(0.2, 0.5), default=0.3)
    assert result["y"] == Float(0.2, 1.0, default=0.3)
    assert result["k"] == Categorical(["a", "c"], likely=["a"], default="c")


def test_steps_on_a_logarithmic_scale_stay_in_the_space():
    """Optuna has none, so it has all numbers between the bounds."""
    space = Space({"x": Float(0.1, 1.0, log=True, step=0.1), "n": Int(1, 31, log=True, step=5)})
    distributions = {"x": FloatDistribution(0.1, 1.0, log=True), "n": IntDistribution(1, 31, log=True)}
    assert to_optuna(space) == distributions
    translation = translation_of(space)
    assert translation.read_params({"x": 0.33, "n": 25}) == {"x": 0.3, "n": 26}
    assert translation.read_params({"x": 1.33, "n": 25}) is None
    narrower = translation.restrict({**distributions, "x": FloatDistribution(0.2, 0.5, log=True)}).space
    assert narrower["x"] == Float(0.2, 0.5, log=True, step=0.1)


def test_a_configuration_that_does_not_fit_is_none():
    space = Space({"kernel": Categorical(["rbf", "poly"]), "degree": Int(2, 5, when={"kernel": "poly"})})
    translation = translation_of(space)
    assert translation.read_params({"kernel": "rbf", "degree": 3, "other": 1}) == {"kernel": "rbf"}
    assert translation.read_params({"kernel": "poly"}) == {"kernel": "poly", "degree": 4}  # in the middle
    assert translation.read_params({"other": 1}) is None
    assert translation.read_params({"kernel": "poly", "degree": 7}) is None
    assert translation.read_params({"kernel": "linear", "degree": 3}) is None
    assert optuna.trial.create_trial(value=0.0).params == {}
