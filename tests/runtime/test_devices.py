"""Which devices are used, and the meshes that they make."""

import jax
import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.runtime import devices


@pytest.fixture(autouse=True)
def all_again():
    yield
    devices.use(None)


def test_shapes_that_divide_and_that_cover():
    for n in range(1, 13):
        for outer in (1, 2, 5, 10):
            for inner in (1, 3, 4, 100):
                rows, columns = devices.dividing_shape(n, outer, inner)
                assert rows * columns <= n
                assert outer % rows == 0
                assert inner % columns == 0
                # The outer axis first: no divisor that still fits is larger, nor of the inner one on what is left.
                assert not [k for k in range(rows + 1, n + 1) if outer % k == 0]
                assert not [k for k in range(columns + 1, n // rows + 1) if inner % k == 0]
    for n in range(1, 17):
        for tasks in (1, 3, 6, 16):
            for designs in (1, 5):
                rows, columns = devices.covering_shape(n, tasks, designs)
                assert rows * columns == n
                busiest = int(np.ceil(tasks / rows) * np.ceil(designs / columns))
                others = [np.ceil(tasks / a) * np.ceil(designs * a / n) for a in range(1, n + 1) if n % a == 0]
                assert busiest == min(others)


def test_devices_in_use():
    have = jax.local_devices()
    assert devices.local() == devices.all_devices() == tuple(have)
    devices.use(1)
    assert devices.local() == devices.all_devices() == (have[0],)
    mesh = devices.make_mesh(devices.local(), (1, 1), ("a", "b"))
    assert dict(mesh.shape) == {"a": 1, "b": 1}


@pytest.mark.parametrize("count", [0, -1, 1000])
def test_devices_that_are_not_there(count):
    with pytest.raises(ConfigError, match=f"this process has {len(jax.devices())} cpu .*devices={count}"):
        devices.use(count)
