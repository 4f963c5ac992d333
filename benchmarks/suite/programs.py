"""What a compiled program consists of: kernels of a loop's body, and the bytes that they move, from its HLO text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

_WIDTH = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "f32": 4}
_WIDTH |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "s4": 1, "u4": 1}
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "iota"}
_FREE |= {"partition-id", "replica-id", "opt-barrier"}
_CALLS = {"while", "call", "conditional", "async-start", "async-done"}
_SHAPE = re.compile(r"\b([a-z]+[0-9]*)\[([0-9,]*)\]")
_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r"\s([a-z][a-z\-]*)\(")
_CALLED = re.compile(r"(?:body|condition|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?\s*:?\s*=?\s*\{\s*"?n"?\s*[:=]\s*"?(\d+)')


@dataclass(frozen=True)
class Instruction:
    """A line of a computation."""

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


@dataclass
class Program:
    """A module's computations."""

    computations: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""


@dataclass(frozen=True)
class Counts:
    """What a computation launches, loops inside it once."""

    kernels: int
    """Everything but what only names memory."""
    fusions: int
    products: int
    """Matrix products, by the compiler's own code or a library's."""
    loops: int
    bytes: int
    """Results and operands of the kernels; of an operand that is sliced, the slice."""


def shape_bytes(text: str) -> int:
    """Bytes of all arrays that are named in a type.

    Example:
      >>> shape_bytes("(f32[10,32]{1,0}, pred[], s32[3])")
      1293
    """
    total = 0
    for kind, dimensions in _SHAPE.findall(text):
        if kind in _WIDTH:
            total += _WIDTH[kind] * math.prod(int(n) for n in dimensions.split(",") if n)
    return total


def parse(text: str) -> Program:
    """Reads a module as ``compiled.as_text()`` prints it."""
    program, current = Program(), None
    for line in text.splitlines():
        header = _HEADER.match(line)
        if header:
            current = header.group(2)
            program.computations[current] = []
            program.entry = current if header.group(1) else program.entry
        elif line.startswith("}"):
            current = None
        elif current is not None and (found := _INSTRUCTION.match(line)):
            program.computations[current].append(_instruction(*found.groups()))
    return program


def _instruction(name: str, rest: str) -> Instruction:
    at = _OPCODE.search(" " + rest)
    opcode = at.group(1) if at else "unknown"
    type_, after = (rest[: at.start()], rest[at.end() - 1 :]) if at else (rest, "")
    inside = after.split(")", 1)[0]
    operands = tuple(re.findall(r"%([\w.\-]+)", inside)) or tuple(re.findall(r"([\w.\-]+)(?:,|$)", inside))
    called = _CALLED.findall(after)
    for branches in _BRANCHES.findall(after):
        called += re.findall(r"%?([\w.\-]+)", branches)
    trips, body = _TRIPS.search(after), re.search(r"body=%?([\w.\-]+)", after)
    library = opcode == "custom-call" and re.search(r"gemm|matmul|dot|cublas|cudnn|ynn|onednn", after.lower())
    return Instruction(
        name=name,
        opcode=opcode,
        bytes=shape_bytes(type_),
        operands=operands,
        called=tuple(called),
        trips=int(trips.group(1)) if trips else None,
        body=body.group(1) if body else None,
        is_product=opcode in ("dot", "convolution") or bool(library),
    )


def loops(program: Program) -> Iterator[Instruction]:
    """All while loops."""
    for instructions in program.computations.values():
        yield from (one for one in instructions if one.opcode == "while")


def count(program: Program, name: str) -> Counts:
    """What one turn of a computation launches, what it calls and loops inside it included."""
    kernels = fusions = products = inner = moved = 0
    sizes = {one.name: one.bytes for one in program.computations[name]}
    for one in program.computations[name]:
        if one.opcode in _FREE:
            continue
        if one.opcode in _CALLS:
            inner += one.opcode == "while"
            for part in one.called:
                if part in program.computations:
                    found = count(program, part)
                    kernels, fusions = kernels + found.kernels, fusions + found.fusions
                    products, inner, moved = products + found.products, inner + found.loops, moved + found.bytes
            continue
        kernels += 1
        fusions += one.opcode == "fusion"
        products += one.is_product or _holds_product(program, one)
        moved += one.bytes + sum(_read(program, one, i, sizes) for i in range(len(one.operands)))
    return Counts(kernels, fusions, products, inner, moved)


_PARTS = ("dynamic-slice", "gather")


def _read(program: Program, one: Instruction, i: int, sizes: dict[str, int]) -> int:
    """Bytes of an operand that a kernel reads: of a large array of which it takes a slice, that slice."""
    whole = sizes.get(one.operands[i], 0)
    if one.opcode in _PARTS and i == 0:
        return min(whole, one.bytes)
    if one.opcode != "fusion":
        return whole
    inside = [inner for part in one.called for inner in program.computations.get(part, [])]
    names = {inner.name for inner in inside if inner.opcode == "parameter" and inner.operands == (str(i),)}
    users = [inner for inner in inside if names & set(inner.operands)]
    if users and all(user.opcode in _PARTS and user.operands[0] in names for user in users):
        return min(whole, sum(user.bytes for user in users))
    return whole


def _holds_product(program: Program, one: Instruction) -> bool:
    """Whether a fusion was built around a product."""
    parts = (program.computations.get(part, []) for part in one.called)
    return one.opcode == "fusion" and any(inner.is_product for part in parts for inner in part)


def loop_body(text: str, turns: int) -> Counts:
    """What one of so many turns of a loop launches, of a body of several turns its share, rounded up.

    Where the compiler does not tell the number of turns, or has several loops of that number, the largest body counts.

    Raises:
      ValueError: where there is no loop.
    """
    program = parse(text)
    every = [one for one in loops(program) if one.body in program.computations]
    if not every:
        raise ValueError("a program with a loop is needed, but got one without")
    unrolled = [[one for one in every if one.trips == turns // n] for n in (1, 2, 4)]
    n, wanted = next(((n, found) for n, found in zip((1, 2, 4), unrolled, strict=True) if found), (1, every))
    counts = max((count(program, str(one.body)) for one in wanted), key=lambda found: found.kernels)
    return Counts(**{name: -(-value // n) for name, value in asdict(counts).items()})
