"""Products of inputs that are rounded to bfloat16, with sums and derivatives of float32."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from dre_jax.methods.dre.ensemble import Support, init, scores
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.nn.networks import _rounded_product

MODEL = ModelConfig(members=2, hidden=(8, 7), phi=(6, 5), rho=(5, 4), products="bfloat16")


def rounded(a):
    return np.asarray(a).astype(ml_dtypes.bfloat16).astype(np.float64)


def test_inputs_are_rounded_of_the_derivatives_products_too():
    rng = np.random.default_rng(0)
    a, b, slope = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((9, 5), (5, 7), (9, 7)))
    found, pull_back = jax.vjp(_rounded_product, a, b)
    found_a, found_b = pull_back(slope)
    np.testing.assert_allclose(found, rounded(a) @ rounded(b), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found_a, rounded(slope) @ rounded(b).T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found_b, rounded(a).T @ rounded(slope), rtol=1e-5, atol=1e-6)
    assert np.abs(found - np.asarray(a, np.float64) @ b).max() > 1e-3


@pytest.mark.parametrize("context", ["own", "none"])
@pytest.mark.parametrize("products", ["bfloat16", "float32"])
def test_every_product_of_an_ensemble_and_of_its_gradient(context, products):
    model = replace(MODEL, context=context, products=products)
    x = jnp.linspace(0.0, 1.0, 21).reshape(7, 3)
    support = Support(x[:4], jnp.linspace(1.0, 0.0, 4), jnp.ones(4, bool))
    params = init(model, 3, jax.random.key(0))
    step = jax.jit(jax.value_and_grad(lambda params: jnp.sum(scores(model, params, support, x) ** 2)))
    kind = {"bfloat16": "bf16", "float32": "f32"}[products]
    for platform, inputs in {"tpu": kind, "cuda": kind, "cpu": "f32"}.items():
        program = step.trace(params).lower(lowering_platforms=(platform,)).as_text()
        signatures = re.findall(r"stablehlo\.dot_general.*: (\(.*)", program)
        assert len(signatures) > 6
        wanted = rf"\(tensor<[\dx]+x{inputs}>, tensor<[\dx]+x{inputs}>\) -> tensor<[\dx]+xf32>"
        assert [one for one in signatures if not re.fullmatch(wanted, one)] == []
        # A CPU has no such products: it rounds their inputs, in a way that its compiler does not take out.
        roundings = program.count("stablehlo.reduce_precision")
        assert roundings == (2 * len(signatures) if inputs != kind else 0)
    # Parameters, which the optimiser adds to, stay float32.
    gradient = jax.eval_shape(step, params)[1]
    assert {leaf.dtype for leaf in jax.tree.leaves((params, gradient))} == {jnp.dtype(jnp.float32)}


def test_scores_are_those_of_rounded_layers():
    model = replace(MODEL, context="none")
    params = init(model, 3, jax.random.key(0))
    x = jnp.asarray(np.random.default_rng(1).random((50, 3)), jnp.float32)
    found = np.asarray(scores(model, params, Support(x[:1], x[:1, 0], jnp.ones(1, bool)), x))
    assert found.dtype == np.float32
    for member in range(model.members):
        h = np.asarray(x)
        for name in ("hidden_0", "hidden_1", "out"):
            kernel, bias = (np.asarray(params.scorers[f"{name}_{kind}"])[member] for kind in ("kernel", "bias"))
            h = rounded(h if name == "hidden_0" else np.maximum(h, 0.0)) @ rounded(kernel) + bias
        # Where a sum in float32 and one in float64 lie on two sides of a boundary they are rounded apart.
        np.testing.assert_allclose(found[member], h[:, 0], atol=4e-3)
        assert np.mean(np.abs(found[member] - h[:, 0]) < 1e-5) > 0.8
