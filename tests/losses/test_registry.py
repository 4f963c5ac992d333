"""What a loss declares holds where it is computed."""

import jax
import jax.numpy as jnp
import pytest

from dre_jax.errors import ConfigError
from dre_jax.losses import LOSSES, Loss, RankedList

SHAPE = (2, 3)
SCORES = jnp.arange(6.0).reshape(SHAPE)
PLACES = jnp.broadcast_to(jnp.arange(3), SHAPE)
LISTS = RankedList(-SCORES, jnp.ones(SHAPE, bool), jnp.ones(SHAPE), PLACES, PLACES)


def squares(scores, lists):
    return jnp.sum(jnp.where(lists.where, (scores - lists.response) ** 2, 0.0), axis=-1)


@pytest.mark.parametrize(
    ("fn", "uses_values", "message"),
    [
        (3, True, "a loss must be a function, but got 3"),
        (squares, None, "uses_values of a loss must be True or False, but is None"),
    ],
)
def test_invalid_declarations(fn, uses_values, message):
    with pytest.raises(ConfigError, match=message):
        Loss(fn, uses_values=uses_values)


def test_a_loss_of_another_shape():
    for fn, shape in ((lambda scores, lists: scores, r"\[2, 3\]"), (lambda scores, lists: 0.0, r"\[\]")):
        with pytest.raises(ConfigError, match=rf"but maps f32\[2, 3\] to f32{shape}"):
            Loss(fn, uses_values=True)(SCORES, LISTS)


@pytest.mark.parametrize("fn", [squares, jax.jit(squares)])
def test_a_loss_of_the_order_alone_gets_no_values(fn):
    assert Loss(fn, uses_values=True)(SCORES, LISTS).tolist() == [20.0, 200.0]  # sums of (2 i)^2
    with pytest.raises(TypeError):
        Loss(fn, uses_values=False)(SCORES, LISTS)


@pytest.mark.parametrize("name", LOSSES)
def test_the_librarys_declarations_hold(name):
    """Functions that use values need them; the others return the same without."""
    loss, withheld = LOSSES[name], LISTS._replace(response=None)
    if loss.uses_values:
        with pytest.raises((TypeError, AttributeError)):
            loss.fn(SCORES, withheld)
    else:
        assert loss.fn(SCORES, withheld).tolist() == loss.fn(SCORES, LISTS).tolist()
