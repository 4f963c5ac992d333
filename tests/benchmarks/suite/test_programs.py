"""Kernels and bytes counted in a program that was written by hand, and in one that XLA compiled."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from benchmarks.suite.programs import array_sizes, loop_body, serial, whole_program

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
    assert whole_program(TEXT)["loops"] == 2
    with pytest.raises(ValueError, match="with a loop is needed"):
        loop_body("ENTRY %main (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n", 3)


TPU = """\
HloModule jit_f, is_scheduled=true

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


def test_of_a_tpu_by_hand():
    found = loop_body(TPU, 100)
    assert (found.kernels, found.copies, found.collectives, found.cycles) == (3, 1, 1, 1234)
    numbers = 4 * 17 * 32 * 4
    inner, outer = 4 * 24 * 128 * 4, 17 * 32 * 128 * 4  # 32 of 128 lanes, or four of them
    assert found.bytes == 2 * numbers + 2 * numbers + 2 * numbers
    assert found.padded_bytes == 2 * inner + (inner + outer) + 2 * outer
    # The copy leaves the main memory once; what is negated lies on the chip.
    assert found.main_bytes == inner + outer + 2 * outer


def test_a_kernel_of_the_library_is_all_turns():
    text = """\
ENTRY %main (x: f32[4,8,128], y: f32[100,20]) -> f32[4,8,128] {
  %x = f32[4,8,128]{2,1,0:T(8,128)} parameter(0)
  %y = f32[100,20]{1,0:T(8,128)} parameter(1)
  ROOT %fit = f32[4,8,128]{2,1,0:T(8,128)} custom-call(%x, %y), custom_call_target="tpu_custom_call"
}
"""
    found = loop_body(text, 100)
    assert (found.kernels, found.copies) == (1, 0)
    assert found.bytes == -(-(2 * 4 * 8 * 128 * 4 + 100 * 20 * 4) // 100)
    assert found.padded_bytes == -(-(2 * 4 * 8 * 128 * 4 + 104 * 128 * 4) // 100)


@pytest.mark.parametrize(
    ("array", "numbers", "lying"),
    [
        ("f32[64,10,32,32]{3,2,1,0:T(8,128)}", 64 * 10 * 32 * 32 * 4, 64 * 10 * 32 * 128 * 4),
        ("f32[32,32,640]{2,1,0:T(8,128)S(1)}", 32 * 32 * 640 * 4, 32 * 32 * 640 * 4),
        ("f32[5,33]{0,1:T(8,128)}", 5 * 33 * 4, 40 * 128 * 4),
        ("bf16[3,2]{1,0:T(8,128)(2,1)}", 12, 8 * 128 * 2),
        ("f32[300]{0:T(256)}", 1200, 512 * 4),
        ("s32[]{:T(128)}", 4, 4),
        ("(f32[8,128]{1,0}, u32[3])", 4096 + 12, 4096 + 12),
    ],
)
def test_bytes_with_their_tiles(array, numbers, lying):
    sizes = array_sizes(array)
    assert (sizes.bytes, sizes.padded_bytes) == (numbers, lying)
    assert sizes.main_bytes == (0 if "S(1)" in array else lying)


SERIAL = """\
%small (p: f32[8]) -> f32[8] {
  ROOT %p = f32[8]{0} parameter(0)
}

%large (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %twice = f32[8]{0} add(%p, %p), backend_config={"estimated_cycles":"7"}
}

%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]) parameter(0)
  %lower = f32[8]{0} custom-call(%t), custom_call_target="Cholesky"
  %chosen = f32[8]{0} conditional(%t, %lower, %lower), branch_computations={%small, %large}
  ROOT %out = (s32[], f32[8]) tuple(%t, %chosen)
}

%until (t: (s32[], f32[8])) -> pred[] {
  %t = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %most = s32[] constant(20)
  ROOT %more = pred[] compare(%i, %most), direction=LT
}

%as_needed (t: (s32[], f32[8])) -> pred[] {
  %t = (s32[], f32[8]) parameter(0)
  ROOT %failed = pred[] fusion(%t), kind=kLoop, calls=%small
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %first = f32[8]{0} multiply(%x, %x), backend_config={"estimated_cycles":"100"}
  %known = (s32[], f32[8]) while(%first), condition=%until, body=%body
  %unknown = (s32[], f32[8]) while(%known), condition=%as_needed, body=%body
  ROOT %last = f32[8]{0} get-tuple-element(%unknown), index=1
}
"""


def test_what_comes_one_after_the_other_by_hand():
    found = serial(SERIAL)
    assert str(found) == "1 + 20 x (1 + 1 x 1) + n x (1 + 1 x 1)"
    assert found.total("kernels") == 1 + 20 * 2 + 2
    assert found.total("factorisations") == 20 + 1
    assert found.total("cycles") == 100 + 20 * 7 + 7
    with pytest.raises(ValueError, match="a module with an entry is needed"):
        serial("nothing")


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


@pytest.mark.parametrize("target", ["cusolver_potrf_ffi", "__cublas$triangularSolve"])
def test_factorisations_of_a_gpu_count_too(target):
    on_a_gpu = SERIAL.replace('"Cholesky"', f'"{target}"')
    assert serial(on_a_gpu) == serial(SERIAL)
    assert serial(SERIAL.replace('"Cholesky"', '"another"')).total("factorisations") == 0
