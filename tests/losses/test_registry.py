"""What a loss declares is checked when it is registered."""

import jax
import jax.numpy as jnp
import pytest

from dre_jax.errors import ConfigError
from dre_jax.losses import LOSSES, Loss, register_loss

pytestmark = pytest.mark.usefixtures("registries")


def squares(scores, lists):
    return jnp.sum(jnp.where(lists.where, (scores - lists.response) ** 2, 0.0), axis=-1)


def sums(scores, lists):
    return jnp.sum(jnp.where(lists.where, scores, 0.0), axis=-1)


@pytest.mark.parametrize(
    ("fn", "uses_values", "message"),
    [
        (3, True, "must be a function, but got 3"),
        (squares, None, "uses_values of a loss must be True or False, but is None"),
        (squares, False, "declared with uses_values=False, so it must not read RankedList.response"),
        (jax.jit(squares), False, "declared with uses_values=False, so it must not read RankedList.response"),
        (lambda scores: scores, True, r"must map scores f32\[..., n\] and their RankedList .*, but raises TypeError"),
        (lambda scores, lists: scores, True, r"but maps f32\[2, 3\] to ShapeDtypeStruct\(shape=\(2, 3\)"),
        (lambda scores, lists: 0.0, True, r"but maps f32\[2, 3\] to ShapeDtypeStruct\(shape=\(\)"),
    ],
)
def test_invalid_losses(fn, uses_values, message):
    with pytest.raises(ConfigError, match=message):
        register_loss("new", fn, uses_values=uses_values)
    assert "new" not in LOSSES


def test_a_loss_must_declare_whether_it_uses_values():
    with pytest.raises(TypeError, match="uses_values"):
        register_loss("new", squares)
    register_loss("new", squares, uses_values=True)
    register_loss("order", jax.jit(sums), uses_values=False)
    with pytest.raises(ConfigError, match="a loss must have a name of its own"):
        register_loss("order", sums, uses_values=True)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_the_librarys_declarations_hold(name):
    loss = LOSSES.pop(name)
    register_loss(name, loss.fn, uses_values=loss.uses_values)
    if loss.uses_values:
        with pytest.raises(ConfigError, match=r"must not read RankedList\.response"):
            register_loss(f"{name} again", loss.fn, uses_values=False)
    assert LOSSES[name] == Loss(loss.fn, uses_values=loss.uses_values)
