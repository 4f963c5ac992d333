"""The account of an epoch, on a program that was written by hand."""

import pytest

from benchmarks.profile import part_of, parts_of_kernels, shares

BODY = "jit(f)/while/body/closed_call"
PROGRAM = f"""\
%inside.1 (p: f32[8,8]) -> f32[8,8] {{
  ROOT %dot.1 = f32[8,8] dot(%p, %p), lhs_contracting_dims={{1}}
}}

%turn (p: f32[8,8]) -> f32[8,8] {{
  %ynn_fusion.3 = f32[8,8] fusion(%p), kind=kCustom, calls=%inside.1, backend_config={{"kind":"__ynn_fusion"}}
  %ynn_fusion.4 = f32[8] fusion(%p), kind=kCustom, calls=%sum, backend_config={{"kind":"__ynn_fusion"}}
  %max.7 = f32[8,8] fusion(%p), kind=kLoop, metadata={{op_name="{BODY}/jvp(vmap(_Scorer))/jit(relu)/max"}}
  %exp.2 = f32[8,8] fusion(%p), kind=kLoop, metadata={{op_name="{BODY}/jvp()/exp"}}
  %sub.9 = f32[8,8] fusion(%p), kind=kLoop, metadata={{op_name="{BODY}/sub"}}
  %while.5 = f32[8,8] while(%p), body=%turn
  ROOT %copy.1 = f32[8,8] copy(%p)
}}
"""


def test_each_kernel_has_its_part():
    networks = "networks: biases, ReLU, sums, copies"
    assert parts_of_kernels(PROGRAM) == {
        "dot.1": "matrix products",
        "ynn_fusion.3": "matrix products",
        "ynn_fusion.4": networks,
        "max.7": networks,
        "exp.2": "loss",
        "sub.9": "Adam",
        "copy.1": part_of(""),
    }


def test_shares_leave_out_what_is_no_kernel():
    found = shares({"dot.1": 3.0, "sub.9": 1.0, "while.5": 9.0, "python": 5.0}, parts_of_kernels(PROGRAM))
    assert list(found) == ["matrix products", "Adam"]
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["Adam"] == pytest.approx(0.25)
