"""What a compiled program consists of: kernels of a loop's body, and the bytes that they move, from its HLO text."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, fields

_WIDTH = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "f32": 4}
_WIDTH |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "s4": 1, "u4": 1}
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "iota"}
_FREE |= {"partition-id", "replica-id", "opt-barrier"}
_CALLS = {"while", "call", "conditional", "async-start", "async-done"}
_NAME = r"%?([\w.\-]+)"
_SHAPE = re.compile(r"\b([a-z]+[0-9]*)\[([0-9,]*)\]")
_HEADER = re.compile(rf"^(ENTRY )?{_NAME} \(.*\) -> .* \{{$")
_INSTRUCTION = re.compile(rf"^\s+(?:ROOT )?{_NAME} = (.*)$")
_OPCODE = re.compile(r"\s([a-z][a-z\-]*)\(")
_CALLED = re.compile(rf"(?:body|condition|to_apply|calls|true_computation|false_computation)={_NAME}")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?\s*:?\s*=?\s*\{\s*"?n"?\s*[:=]\s*"?(\d+)')
_LIBRARIES = re.compile(r"gemm|matmul|dot|cublas|cudnn|ynn|onednn", re.IGNORECASE)


@dataclass(frozen=True)
class Instruction:
    name: str
    opcode: str
    bytes: int
    """Of its result."""
    operands: tuple[str, ...]
    called: tuple[str, ...]
    """Computations that it names."""
    trips: int | None
    """Turns of a loop, where the compiler knows them."""
    body: str | None
    """Of a loop."""
    is_product: bool


Program = dict[str, list[Instruction]]
"""A module's computations."""


@dataclass(frozen=True)
class Counts:
    """What a computation launches, loops inside it once."""

    kernels: int = 0
    """Everything but what only names memory."""
    fusions: int = 0
    products: int = 0
    """Matrix products, by the compiler's own code or a library's."""
    loops: int = 0
    bytes: int = 0
    """Results and operands of the kernels; of an operand that is sliced, the slice."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def shape_bytes(text: str) -> int:
    """Bytes of all arrays that are named in a type.

    Example:
      >>> shape_bytes("(f32[10,32]{1,0}, pred[], s32[3])")
      1293
    """
    found = [(_WIDTH.get(kind, 0), sizes.split(",")) for kind, sizes in _SHAPE.findall(text)]
    return sum(width * math.prod(int(n) for n in sizes if n) for width, sizes in found)


def parse(text: str) -> Program:
    """Reads a module as ``compiled.as_text()`` prints it."""
    program: Program = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if header := _HEADER.match(line):
            current = program[header.group(2)] = []
        elif found := _INSTRUCTION.match(line):
            current.append(_instruction(*found.groups()))
    return program


def _instruction(name: str, rest: str) -> Instruction:
    at = _OPCODE.search(" " + rest)
    opcode = at.group(1) if at else "unknown"
    type_, after = (rest[: at.start()], rest[at.end() - 1 :]) if at else (rest, "")
    inside = after.split(")", 1)[0]
    operands = re.findall(r"%([\w.\-]+)", inside) or re.findall(r"([\w.\-]+)(?:,|$)", inside)
    branches = [name for part in _BRANCHES.findall(after) for name in re.findall(_NAME, part)]
    trips, body = _TRIPS.search(after), re.search(f"body={_NAME}", after)
    return Instruction(
        name=name,
        opcode=opcode,
        bytes=shape_bytes(type_),
        operands=tuple(operands),
        called=(*_CALLED.findall(after), *branches),
        trips=int(trips.group(1)) if trips else None,
        body=body.group(1) if body else None,
        is_product=opcode in ("dot", "convolution") or (opcode == "custom-call" and bool(_LIBRARIES.search(after))),
    )


def count(program: Program, name: str) -> Counts:
    """What one turn of a computation launches, what it calls and loops inside it included."""
    total = Counts()
    sizes = {one.name: one.bytes for one in program[name]}
    for one in program[name]:
        inside = [program[part] for part in one.called if part in program]
        if one.opcode in _CALLS:
            total += Counts(loops=one.opcode == "while")
            for part in one.called:
                total += count(program, part) if part in program else Counts()
        elif one.opcode not in _FREE:
            is_fusion = one.opcode == "fusion"
            around_product = is_fusion and any(inner.is_product for part in inside for inner in part)
            moved = one.bytes + sum(_read(one, i, sizes, inside) for i in range(len(one.operands)))
            total += Counts(1, is_fusion, one.is_product or around_product, 0, moved)
    return total


_PARTS = ("dynamic-slice", "gather")


def _read(one: Instruction, i: int, sizes: dict[str, int], called: list[list[Instruction]]) -> int:
    """Bytes of an operand that a kernel reads: of a large array of which it takes a slice, that slice."""
    whole = sizes.get(one.operands[i], 0)
    if one.opcode in _PARTS and i == 0:
        return min(whole, one.bytes)
    inside = [inner for part in called for inner in part if one.opcode == "fusion"]
    names = {inner.name for inner in inside if inner.opcode == "parameter" and inner.operands == (str(i),)}
    users = [inner for inner in inside if names & set(inner.operands)]
    if users and all(user.opcode in _PARTS and user.operands[0] in names for user in users):
        return min(whole, sum(user.bytes for user in users))
    return whole


def loop_body(text: str, turns: int) -> Counts:
    """What one of so many turns of a loop launches, of a body of several turns its share, rounded up.

    Where the compiler does not tell the number of turns, or has several loops of that number, the largest body counts.

    Raises:
      ValueError: where there is no loop.
    """
    program = parse(text)
    every = [one for part in program.values() for one in part if one.opcode == "while" and one.body in program]
    if not every:
        raise ValueError("a program with a loop is needed, but got one without")
    unrolled = {n: [one for one in every if one.trips == turns // n] for n in (1, 2, 4)}
    n, wanted = next(((n, found) for n, found in unrolled.items() if found), (1, every))
    counts = max((count(program, str(one.body)) for one in wanted), key=lambda found: found.kernels)
    return Counts(**{name: -(-value // n) for name, value in asdict(counts).items()})
