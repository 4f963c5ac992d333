"""The parts of a compiled program: kernels of a loop's body, and the bytes that they move, from its HLO text."""

from __future__ import annotations

import re
from dataclasses import asdict, astuple, dataclass, fields, replace

from benchmarks.suite.tiles import main_memory_bytes, padded_bytes, shape_bytes

FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "iota"}
FREE |= {"partition-id", "replica-id", "opt-barrier"}
_NAMES_MEMORY = re.compile(r'custom_call_target="(AllocateBuffer|ConcatBitcast)"')  # TPU's
CALLS = {"while", "call", "conditional", "async-start", "async-done"}
_COLLECTIVES = {"all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute"}
_MOVES = {"copy", "slice", "dynamic-slice"}
_NAME = r"%?([\w.\-]+)"
_HEADER = re.compile(rf"^(ENTRY )?{_NAME} \(.*\) -> .* \{{$")
_INSTRUCTION = re.compile(rf"^\s+(?:ROOT )?{_NAME} = (.*)$")
_OPCODE = re.compile(r"\s([a-z][a-z\-]*)\(")
_CALLED = re.compile(rf"(?:body|condition|to_apply|calls|true_computation|false_computation)={_NAME}")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?\s*:?\s*=?\s*\{\s*"?n"?\s*[:=]\s*"?(\d+)')
_CYCLES = re.compile(r'"estimated_cycles":"(\d{1,15})"')
_LIBRARIES = re.compile(r"gemm|matmul|dot|cublas|cudnn|ynn|onednn", re.IGNORECASE)


@dataclass(frozen=True)
class Sizes:
    """Bytes of an array: of its numbers, with the padding of tiles, and of these those in the main memory."""

    bytes: int = 0
    padded_bytes: int = 0
    main_bytes: int = 0

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Instruction:
    name: str
    opcode: str
    sizes: Sizes
    """Of its result."""
    operands: tuple[str, ...]
    called: tuple[str, ...]
    """Computations that it names."""
    trips: int | None
    """Turns of a loop, where the compiler knows them."""
    body: str | None
    """Of a loop."""
    is_product: bool
    is_written: bool
    """True for a kernel of the library's own."""
    cycles: int
    """The compiler's own estimate, 0 where it says none."""
    text: str
    """As it was printed."""


Program = dict[str, list[Instruction]]
"""A module's computations."""


@dataclass(frozen=True)
class Counts:
    """Launches of a computation, loops inside it counted once."""

    kernels: int = 0
    """Everything but what only names memory."""
    fusions: int = 0
    products: int = 0
    """Matrix products, by the compiler's own code or a library's."""
    loops: int = 0
    bytes: int = 0
    """Results and operands of the kernels; of an operand that is sliced, the slice."""
    padded_bytes: int = 0
    """The same, with what tiles are filled up with."""
    main_bytes: int = 0
    """Of these, those in the device's main memory: a TPU's compiler keeps others on the chip."""
    copies: int = 0
    """Kernels that only move an array, or a slice of it, elsewhere."""
    collectives: int = 0
    """Exchanges between devices."""
    cycles: int = 0
    """The sum of what the compiler estimates, kernel by kernel, where it does."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


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


def has_kernel(text: str) -> bool:
    """Returns whether a kernel of the library's own is called."""
    return 'custom_call_target="tpu_custom_call"' in text


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
        opcode="bitcast" if _NAMES_MEMORY.search(after) else opcode,
        sizes=Sizes(shape_bytes(type_), padded_bytes(type_), main_memory_bytes(type_)),
        operands=tuple(operands),
        called=(*_CALLED.findall(after), *branches),
        trips=int(trips.group(1)) if trips else None,
        body=body.group(1) if body else None,
        is_product=opcode in ("dot", "convolution") or (opcode == "custom-call" and bool(_LIBRARIES.search(after))),
        is_written=has_kernel(after),
        cycles=sum(map(int, _CYCLES.findall(after))),
        text=rest,
    )


def count(program: Program, name: str) -> Counts:
    """Launches of one turn of a computation, with those of what it calls and of loops inside it."""
    total = Counts()
    sizes = {one.name: one.sizes for one in program[name]}
    for one in program[name]:
        if one.opcode in CALLS:
            total += Counts(loops=one.opcode == "while")
            for part in one.called:
                total += count(program, part) if part in program else Counts()
        elif one.opcode not in FREE and not one.opcode.endswith("-start"):
            total += _kernel(one, sizes, [program[part] for part in one.called if part in program])
    return total


def _kernel(one: Instruction, sizes: dict[str, Sizes], inside: list[list[Instruction]]) -> Counts:
    """One kernel; what is started and done later counts once, where it is done, with its result read and written."""
    is_fusion = one.opcode == "fusion"
    around_product = is_fusion and any(inner.is_product for part in inside for inner in part)
    what = one.opcode.removesuffix("-done")
    moved = one.sizes
    if what != one.opcode:
        moved += Sizes(one.sizes.bytes, one.sizes.padded_bytes, one.sizes.padded_bytes - one.sizes.main_bytes)
    else:
        for i in range(len(one.operands)):
            moved += _read(one, i, sizes, inside)
    return Counts(
        1,
        is_fusion,
        one.is_product or around_product,
        bytes=moved.bytes,
        padded_bytes=moved.padded_bytes,
        main_bytes=moved.main_bytes,
        copies=what in _MOVES,
        collectives=what in _COLLECTIVES,
        cycles=one.cycles,
    )


_PARTS = ("dynamic-slice", "gather")


def _read(one: Instruction, i: int, sizes: dict[str, Sizes], called: list[list[Instruction]]) -> Sizes:
    """Bytes of an operand that a kernel reads: of a large array of which it takes a slice, that slice."""
    whole = sizes.get(one.operands[i], Sizes())
    if one.opcode in _PARTS and i == 0:
        return _smaller(whole, one.sizes)
    inside = [inner for part in called for inner in part if one.opcode == "fusion"]
    names = {inner.name for inner in inside if inner.opcode == "parameter" and inner.operands == (str(i),)}
    users = [inner for inner in inside if names & set(inner.operands)]
    if users and all(user.opcode in _PARTS and user.operands[0] in names for user in users):
        return _smaller(whole, sum((user.sizes for user in users), Sizes()))
    return whole


def _smaller(whole: Sizes, part: Sizes) -> Sizes:
    """The smaller of an array and what is taken of it, which lies where the array does."""
    padded = min(whole.padded_bytes, part.padded_bytes)
    return Sizes(min(whole.bytes, part.bytes), padded, padded if whole.main_bytes else 0)


def loop_body(text: str, turns: int) -> Counts:
    """Launches of one of so many turns of a loop, of a body of several turns its share, rounded up.

    Where the compiler does not tell the number of turns, or has several loops of that number, the largest body counts.
    A kernel of the library's own is all turns at once.

    Raises:
      ValueError: where there is no loop.
    """
    program = parse(text)
    if written := _written(program):
        return replace(_shared_out(written, turns), kernels=written.kernels)
    every = [one for part in program.values() for one in part if one.opcode == "while" and one.body in program]
    if not every:
        raise ValueError("a program with a loop is needed, but got one without")
    unrolled = {n: [one for one in every if one.trips == turns // n] for n in (1, 2, 4)}
    n, wanted = next(((n, found) for n, found in unrolled.items() if found), (1, every))
    return _shared_out(max((count(program, str(one.body)) for one in wanted), key=lambda found: found.kernels), n)


def whole(text: str) -> Counts:
    """Launches of a program, loops inside it once."""
    entry = re.search(rf"^ENTRY {_NAME} ", text, re.MULTILINE)
    return count(parse(text), entry.group(1)) if entry else Counts()


def _shared_out(counts: Counts, turns: int) -> Counts:
    return Counts(**{name: -(-value // turns) for name, value in asdict(counts).items()})


def _written(program: Program) -> Counts | None:
    """The kernels of the library's own; None without."""
    found = [(one, part) for part in program.values() for one in part if one.is_written]
    each = [_kernel(one, {known.name: known.sizes for known in part}, []) for one, part in found]
    return sum(each, Counts()) if each else None
