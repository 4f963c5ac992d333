"""Compilation with less effort: inside of other programs too, and never against a user's own options."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.runtime.jit import compile_all_with_less_effort, jit_with_less_effort


@pytest.mark.defaults
def test_a_program_is_compiled_once_for_its_static_arguments_and_shapes():
    @jit_with_less_effort("power")
    def total(x, power=1):
        return (x**power).sum()

    x = jnp.arange(4.0)
    assert [float(total(x)), float(total(x, power=2)), float(total(2.0 * x, 2))] == [6.0, 14.0, 56.0]
    assert total._cache_size() == 3  # by the way in which an argument is passed, as jax.jit
    total(3.0 * x, power=2)
    assert total._cache_size() == 3
    # Options of the compiler are refused inside of another program.
    np.testing.assert_array_equal(jax.jit(jax.vmap(total))(jnp.stack([x, x + 1.0])), [6.0, 10.0])


@pytest.mark.defaults
def test_a_brief_call_has_a_program_of_its_own():
    @jit_with_less_effort(is_brief=lambda x: len(x) < 4)
    def softmax(x):
        return jnp.exp(x) / jnp.sum(jnp.exp(x))

    for n in (3, 4, 3):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_allclose(softmax(x), np.exp(x) / np.exp(x).sum(), rtol=1e-6)
    assert softmax._cache_size() == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "--xla_cpu_parallel_codegen_split_count=2 --xla_cpu_use_fusion_emitters=false"),
        ("--a=1", "--a=1 --xla_cpu_parallel_codegen_split_count=2 --xla_cpu_use_fusion_emitters=false"),
        ("--xla_cpu_use_fusion_emitters=true", "--xla_cpu_use_fusion_emitters=true"),
    ],
)
def test_options_of_a_user_stay(monkeypatch, before, after):
    monkeypatch.setenv("XLA_FLAGS", before)
    compile_all_with_less_effort()
    assert os.environ["XLA_FLAGS"] == after
