"""Kernels, bytes and loops counted in programs that were written by hand, and in one that XLA compiled."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from benchmarks.suite.programs import array_bytes, loop_body

TPU = """\
HloModule jit_f, is_scheduled=true

%fused (p0: f32[4,17,32], p1: s32[]) -> f32[1,17,32] {
  %p0 = f32[4,17,32]{2,1,0:T(8,128)} parameter(0)
  %p1 = s32[]{:T(128)} parameter(1)
  ROOT %slice = f32[1,17,32]{2,1,0:T(8,128)} dynamic-slice(%p0, %p1, %p1, %p1), dynamic_slice_sizes={1,17,32}
}

%body (arg: (s32[], f32[4,17,32], pred[9])) -> (s32[], f32[4,17,32], pred[9]) {
  %arg = (s32[]{:T(128)}, f32[4,17,32]{2,1,0:T(8,128)}, pred[9]{0:T(512)(128)(4,1)}) parameter(0)
  %i = s32[]{:T(128)} get-tuple-element(%arg), index=0
  %w = f32[4,17,32]{2,1,0:T(8,128)} get-tuple-element(%arg), index=1
  %m = pred[9]{0:T(512)(128)(4,1)} get-tuple-element(%arg), index=2
  %copy-start.1 = (f32[4,17,32]{2,1,0:T(8,128)S(1)}, f32[4,17,32]{2,1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%w)
  %copy-done.1 = f32[4,17,32]{2,1,0:T(8,128)S(1)} copy-done(%copy-start.1)
  %room = f32[8,128]{1,0:T(8,128)} custom-call(), custom_call_target="AllocateBuffer"
  %new = f32[4,17,32]{0,2,1:T(8,128)} negate(%copy-done.1), backend_config={"estimated_cycles":"1234"}
  %sum = f32[4,17,32]{0,2,1:T(8,128)} all-reduce(%new), replica_groups={{0,1}}
  %row = f32[1,17,32]{2,1,0:T(8,128)} fusion(%w, %i), kind=kLoop, calls=%fused
  ROOT %t = (s32[]{:T(128)}, f32[4,17,32]{2,1,0:T(8,128)}, pred[9]{0:T(512)(128)(4,1)}) tuple(%i, %w, %m)
}

%condition (arg.3: (s32[], f32[4,17,32], pred[9])) -> pred[] {
  %arg.3 = (s32[]{:T(128)}, f32[4,17,32]{2,1,0:T(8,128)}, pred[9]{0:T(512)(128)(4,1)}) parameter(0)
  ROOT %true = pred[]{:T(512)} constant(true)
}

ENTRY %main (x: f32[4,17,32]) -> f32[4,17,32] {
  %x = f32[4,17,32]{2,1,0:T(8,128)} parameter(0)
  %loop = (s32[]{:T(128)}, f32[4,17,32]{2,1,0:T(8,128)}, pred[9]{0:T(512)(128)(4,1)}) while(%x), \
condition=%condition, body=%body
  ROOT %out = f32[4,17,32]{2,1,0:T(8,128)} get-tuple-element(%loop), index=1
}
"""


def test_a_turn_by_hand():
    found = loop_body(TPU, 100)
    assert (found.kernels, found.collectives, found.cycles) == (4, 1, 1234)
    inner, outer = 4 * 24 * 128 * 4, 17 * 32 * 128 * 4  # 32 of 128 lanes, or four of them
    # The copy leaves the main memory once; what is negated lies on the chip; a slice is read at an index.
    assert found.bytes == inner + outer + 2 * outer + 2 * 24 * 128 * 4 + 4
    # 201 turns, two of them in each of the 100 of a loop, and one left over.
    twice = loop_body(TPU.replace("body=%body", 'body=%body, backend_config={"known_trip_count":{"n":"100"}}'), 201)
    assert (twice.kernels, twice.bytes) == (2, found.bytes // 2)
    with pytest.raises(ValueError, match="with a loop is needed"):
        loop_body("ENTRY %main (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n", 3)


def test_a_kernel_of_the_library_is_all_turns():
    text = """\
ENTRY %main (x: f32[4,8,128], y: f32[100,20]) -> f32[4,8,128] {
  %x = f32[4,8,128]{2,1,0:T(8,128)} parameter(0)
  %y = f32[100,20]{1,0:T(8,128)} parameter(1)
  ROOT %fit = f32[4,8,128]{2,1,0:T(8,128)} custom-call(%x, %y), custom_call_target="tpu_custom_call"
}
"""
    found = loop_body(text, 100)
    assert found.kernels == 1
    assert found.bytes == -(-(2 * 4 * 8 * 128 * 4 + 104 * 128 * 4) // 100)


@pytest.mark.parametrize(
    ("array", "lying"),
    [
        ("f32[64,10,32,32]{3,2,1,0:T(8,128)}", 64 * 10 * 32 * 128 * 4),
        ("f32[32,32,640]{2,1,0:T(8,128)S(1)}", 32 * 32 * 640 * 4),
        ("f32[5,33]{0,1:T(8,128)}", 40 * 128 * 4),
        ("bf16[3,2]{1,0:T(8,128)(2,1)}", 8 * 128 * 2),
        ("f32[300]{0:T(256)}", 512 * 4),
        ("s32[]{:T(128)}", 4),
        ("(f32[8,128]{1,0}, u32[3])", 4096 + 12),
    ],
)
def test_bytes_with_their_tiles(array, lying):
    assert array_bytes(array) == (lying, 0 if "S(1)" in array else lying)


def test_of_xla():
    def step(carry, x):
        return jnp.tanh(carry @ carry) + x, None

    def scanned(a, xs):
        return lax.scan(step, a, xs)[0]

    text = jax.jit(scanned).lower(jnp.ones((64, 64)), jnp.ones((77, 64, 64))).compile().as_text()
    found = loop_body(text, 77)
    assert 1 <= found.kernels < 12
    # At least carry and row read and carry written; not the 77 rows.
    assert 3 * 64 * 64 * 4 <= found.bytes < 12 * 64 * 64 * 4
