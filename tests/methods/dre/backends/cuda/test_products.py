"""Products on tensor cores, as a CPU emulates them: their error beside float64, and what they do with NaN."""

import ctypes

import numpy as np
import pytest

from dre_jax import native
from dre_jax.methods.dre.backends.cuda import compile as kernel_files
from tests.methods.dre.backends.cuda.emulation import build

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(native.compiler_version() is None, reason="no C++ compiler on this machine"),
]

ROWS, WIDTH = 16, 32
ENTRY = """
extern "C" void multiply(const float* x, const float* w, float* out) {
  emu::launch(1, 32, 16, 1, [&] {
    const int lane = threadIdx.x, g = lane >> 2, c = lane & 3;
    Tile<4> in[1], acc[1];
    acc[0].clear();
    load(in[0], x, 0, 16, lane);
    product<1, 4, 4, false>(acc, in, w, lane);
    store(acc[0], out, 0, 16, lane);
  });
}
"""


def multiply(x, w, *, precision):
    """Returns x @ w for 16 x 32 and 32 x 32 numbers, by `product` of tiles.cuh."""
    folder = kernel_files.__file__.rpartition("/")[0]
    with open(f"{folder}/tiles.cuh") as file:
        tiles = file.read()
    constants = f"constexpr int S = 32, XS = 16, SPLIT = {int(precision == 'float32')};"
    library = ctypes.CDLL(str(build("\n".join(['#include "emulate.h"', constants, tiles, ENTRY]), "-O1")))
    result = np.zeros((ROWS, WIDTH), np.float32)
    places = places_of_rows()
    rows = np.zeros(ROWS * WIDTH, np.float32)
    rows[places] = x
    arrays = rows, swizzle(w), result
    library.multiply(*(array.ctypes.data_as(ctypes.c_void_p) for array in arrays))
    return result.reshape(-1)[places]


def swizzle(a):
    """Permutes the columns of each row of weights as `at` of tiles.cuh; its own inverse."""
    row, column = np.indices(a.shape)
    phase = (row & 3) ^ (row >> 2 & 1)
    return np.ascontiguousarray(a[row, column ^ 8 * phase])


def places_of_rows():
    """Returns where activations are: rows 2 q and 2 q + 1 side by side, as `at_pair` of tiles.cuh."""
    row, column = np.indices((ROWS, WIDTH))
    pair = row // 2
    phase = 8 * (pair % 2) + 4 * (pair // 2 % 2)
    return 2 * (pair * WIDTH + (column ^ phase)) + row % 2


@pytest.fixture(scope="module")
def products():
    """Dot products of 32 normal numbers, by the emulation, in float64, and by a chain of float32."""
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(ROWS, WIDTH)), rng.normal(size=(WIDTH, WIDTH))) for _ in range(40)]
    pairs = [(x.astype(np.float32), w.astype(np.float32)) for x, w in pairs]
    chain = []
    for x, w in pairs:
        total = np.zeros((ROWS, WIDTH), np.float32)
        for k in range(WIDTH):
            total += x[:, k : k + 1] * w[k]
        chain.append(total)
    exact = np.stack([x.astype(np.float64) @ w.astype(np.float64) for x, w in pairs])
    size = np.stack([np.abs(x).astype(np.float64) @ np.abs(w) for x, w in pairs])
    return pairs, exact, size, np.stack(chain)


def test_split_products_are_as_exact_as_float32(products):
    """Errors in units of the sum of the products' sizes; cut factors had 3 times this and a bias towards zero."""
    pairs, exact, size, chain = products
    error = (np.stack([multiply(x, w, precision="float32") for x, w in pairs]) - exact) / size
    of_chain = np.sqrt(np.mean(((chain - exact) / size) ** 2))
    assert np.sqrt(np.mean(error**2)) < of_chain
    towards_zero = np.mean(error * np.sign(exact))
    assert abs(towards_zero) < 1e-8


def test_products_of_tf32_round_their_factors(products):
    pairs, exact, size, _ = products
    error = (np.stack([multiply(x, w, precision="tf32") for x, w in pairs[:4]]) - exact[:4]) / size[:4]
    assert 1e-5 < np.sqrt(np.mean(error**2)) < 2.0**-11
    assert abs(np.mean(error * np.sign(exact[:4]))) < 1e-5


@pytest.mark.parametrize("precision", ["float32", "tf32"])
@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0x7FC00000], ids=["of the hardware", "of NumPy"])
def test_nan_stays_nan(precision, bits):
    x, w = np.ones((ROWS, WIDTH), np.float32), np.ones((WIDTH, WIDTH), np.float32)
    x.view(np.uint32)[3, 5] = bits
    result = multiply(x, w, precision=precision)
    assert np.isnan(result[3]).all()
    assert (np.delete(result, 3, axis=0) == WIDTH).all()
    w.view(np.uint32)[7, 9] = bits
    assert np.isnan(multiply(x, w, precision=precision)[:, 9]).all()


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_signs_and_powers_of_two_are_exact(precision):
    x = np.where(np.indices((ROWS, WIDTH)).sum(axis=0) % 2, -0.5, 4.0).astype(np.float32)
    w = np.diag(2.0 ** np.arange(-16, 16)).astype(np.float32)
    np.testing.assert_array_equal(multiply(x, w, precision=precision), x @ w)
