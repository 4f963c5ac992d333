"""Kernels and bytes counted in a program that was written by hand, and in one that XLA compiled."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from benchmarks.suite.programs import count, loop_body, parse, shape_bytes

TEXT = """\
HloModule jit_f, entry_computation_layout={(f32[8,8]{1,0})->f32[8,8]{1,0}}

%fused (param_0: f32[100,8], param_1: s32[]) -> f32[8] {
  %param_0 = f32[100,8]{1,0} parameter(0)
  %param_1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  %slice = f32[1,8]{1,0} dynamic-slice(%param_0, %param_1, %zero), dynamic_slice_sizes={1,8}
  ROOT %flat = f32[8]{0} bitcast(%slice)
}

%around (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0)
  ROOT %dot.1 = f32[8,8]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%inner_body (arg.1: (s32[], f32[4])) -> (s32[], f32[4]) {
  %arg.1 = (s32[], f32[4]{0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%arg.1), index=0
  %v = f32[4]{0} get-tuple-element(%arg.1), index=1
  %neg = f32[4]{0} negate(%v)
  ROOT %t.1 = (s32[], f32[4]{0}) tuple(%i.1, %neg)
}

%inner_condition (arg.2: (s32[], f32[4])) -> pred[] {
  %arg.2 = (s32[], f32[4]{0}) parameter(0)
  %i.2 = s32[] get-tuple-element(%arg.2), index=0
  ROOT %less = pred[] compare(%i.2, %i.2), direction=LT
}

%body (arg: (s32[], f32[100,8], f32[8,8], f32[4])) -> (s32[], f32[100,8], f32[8,8], f32[4]) {
  %arg = (s32[], f32[100,8]{1,0}, f32[8,8]{1,0}, f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%arg), index=0
  %all = f32[100,8]{1,0} get-tuple-element(%arg), index=1
  %w = f32[8,8]{1,0} get-tuple-element(%arg), index=2
  %u = f32[4]{0} get-tuple-element(%arg), index=3
  %row = f32[8]{0} fusion(%all, %i), kind=kLoop, calls=%fused
  %multiplied = f32[8,8]{1,0} fusion(%w), kind=kOutput, calls=%around
  %gemm = (f32[8,8]{1,0}, s8[16]{0}) custom-call(%w, %w), custom_call_target="__cublas$gemm"
  %start = (s32[], f32[4]{0}) tuple(%i, %u)
  %inner = (s32[], f32[4]{0}) while(%start), condition=%inner_condition, body=%inner_body
  ROOT %t = (s32[], f32[100,8]{1,0}, f32[8,8]{1,0}, f32[4]{0}) tuple(%i, %all, %multiplied, %u)
}

%condition (arg.3: (s32[], f32[100,8], f32[8,8], f32[4])) -> pred[] {
  %arg.3 = (s32[], f32[100,8]{1,0}, f32[8,8]{1,0}, f32[4]{0}) parameter(0)
  ROOT %true = pred[] constant(true)
}

ENTRY %main (x: f32[8,8]) -> f32[8,8] {
  %x = f32[8,8]{1,0} parameter(0)
  %first = (s32[], f32[100,8]{1,0}, f32[8,8]{1,0}, f32[4]{0}) tuple(%x)
  %loop = (s32[], f32[100,8]{1,0}, f32[8,8]{1,0}, f32[4]{0}) while(%first), condition=%condition, body=%body, \
backend_config={"known_trip_count":{"n":"100"}}
  ROOT %out = f32[8,8]{1,0} get-tuple-element(%loop), index=2
}
"""


def test_by_hand():
    found = loop_body(TEXT, 100)
    # The slice, the fusion around a product, the library's product; in the inner loop a negation and a comparison.
    assert (found.kernels, found.fusions, found.products, found.loops) == (5, 2, 2, 1)
    row, multiplied, gemm = 32 + 32 + 4, 256 + 256, 256 + 16 + 512
    assert found.bytes == row + multiplied + gemm + (16 + 16) + (1 + 4 + 4)


def test_a_body_of_several_turns_is_shared_out():
    # 201 turns, two of them in each of the 100 of the loop, and one left over.
    found, whole = loop_body(TEXT, 201), loop_body(TEXT, 100)
    assert (found.kernels, found.fusions, found.products, found.loops) == (3, 1, 1, 1)
    assert found.bytes == -(-whole.bytes // 2)


def test_whole_programs():
    assert count(parse(TEXT), "main").loops == 2
    assert shape_bytes("bf16[3,2]{1,0}") == 12
    with pytest.raises(ValueError, match="with a loop is needed"):
        loop_body("ENTRY %main (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n", 3)


def test_of_xla():
    def step(carry, x):
        return jnp.tanh(carry @ carry) + x, None

    def scanned(a, xs):
        return lax.scan(step, a, xs)[0]

    text = jax.jit(scanned).lower(jnp.ones((64, 64)), jnp.ones((77, 64, 64))).compile().as_text()
    found = loop_body(text, 77)
    assert found.products == 1
    assert 1 <= found.kernels < 12
    # At least carry and row read and carry written; not the 77 rows.
    assert 3 * 64 * 64 * 4 <= found.bytes < 12 * 64 * 64 * 4
