"""What a compiled program does one after the other: its loops, and the chain of kernels that they come to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.suite.programs import CALLS, FREE, Instruction, Program, parse

_FACTORISES = re.compile(
    r'custom_call_target="(Cholesky|InvertDiagBlocks\w*|cusolver_potrf\w*|__cublas\$triangularSolve)"'
)
_CONSTANT = re.compile(r"constant\((\d+)\)")


@dataclass(frozen=True)
class Turns:
    """A loop inside a program; the program itself is one of a single turn."""

    turns: int | None
    """None where the numbers decide: that counts as one."""
    kernels: int
    """Launches of a turn, inner loops aside."""
    factorisations: int
    """Of these, Cholesky factors, and inverses for triangular systems."""
    cycles: int
    """The compiler's estimate of these launches; it has none of factorisations and sorts."""
    inner: tuple[Turns, ...]

    def total(self, name: str) -> int:
        """Of "kernels", "factorisations" or "cycles": all that come one after the other."""
        return (self.turns or 1) * (int(getattr(self, name)) + sum(loop.total(name) for loop in self.inner))

    def __str__(self) -> str:
        """The turns and the launches of each, inner loops in brackets.

        Example:
          >>> print(Turns(1, 50, 0, 0, (Turns(100, 7, 0, 0, (Turns(None, 3, 1, 0, ()),)),)))
          50 + 100 x (7 + n x 3)
        """
        inside = "".join(f" + {'n' if one.turns is None else one.turns} x {one._in_brackets}" for one in self.inner)
        return f"{self.kernels}{inside}"

    @property
    def _in_brackets(self) -> str:
        return f"({self})" if self.inner else str(self)


def serial(text: str) -> Turns:
    """The loops of a module as ``compiled.as_text()`` prints it.

    Raises:
      ValueError: where it has no entry.
    """
    entry = re.search(r"^ENTRY %?([\w.\-]+) ", text, re.MULTILINE)
    if entry is None:
        raise ValueError("a module with an entry is needed, but got one without")
    return _turns(parse(text), entry.group(1), 1)


def _turns(program: Program, name: str, turns: int | None) -> Turns:
    """A computation that is gone through so often; of branches the longest counts."""
    kernels, inner = [], []
    for one in _launched(program, name):
        if one.opcode == "while" and one.body:
            inner.append(_turns(program, one.body, _trips(program, one)))
        elif one.opcode == "conditional":
            branches = [_turns(program, part, 1) for part in one.called if part in program]
            inner.append(max(branches, key=lambda branch: branch.total("kernels")))
        else:
            kernels.append(one)
    factorisations = sum(bool(_FACTORISES.search(one.text)) for one in kernels)
    return Turns(turns, len(kernels), factorisations, sum(one.cycles for one in kernels), tuple(inner))


def _launched(program: Program, name: str) -> Iterator[Instruction]:
    """Kernels, loops and branches; calls are gone into."""
    for one in program[name]:
        if one.opcode == "call":
            for part in one.called:
                yield from _launched(program, part)
        elif one.opcode in ("while", "conditional") or not (
            one.opcode in FREE | CALLS or one.opcode.endswith("-start")
        ):
            yield one


def _trips(program: Program, loop: Instruction) -> int | None:
    """Turns of a loop: as the compiler says, or as its condition compares the counter with a constant."""
    if loop.trips is not None:
        return loop.trips
    condition = program.get(next((part for part in loop.called if part != loop.body), ""), [])
    if not condition or condition[-1].opcode != "compare" or "direction=LT" not in condition[-1].text:
        return None
    numbers = [_CONSTANT.search(one.text) for one in condition if one.name in condition[-1].operands]
    found = [int(number.group(1)) for number in numbers if number]
    return found[0] if len(found) == 1 else None
