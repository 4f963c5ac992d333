"""The parts of a compiled program, from its HLO text: kernels, bytes that they move, loops and chains of kernels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, NamedTuple

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
class Counts:
    """Launches of a computation with loops inside it once, or the bytes of an array."""

    kernels: int = 0
    """Everything but what only names memory."""
    fusions: int = 0
    products: int = 0
    """Matrix products, by the compiler's own code or a library's."""
    loops: int = 0
    bytes: int = 0
    """Results and operands of the kernels; of an operand that is sliced, the slice."""
    padded_bytes: int = 0
    """The same, with the padding of tiles."""
    main_bytes: int = 0
    """Padded bytes in the device's main memory: a TPU's compiler keeps other arrays on the chip."""
    copies: int = 0
    """Kernels that only move an array, or a slice of it, elsewhere."""
    collectives: int = 0
    """Exchanges between devices."""
    cycles: int = 0
    """The sum of what the compiler estimates, kernel by kernel, where it does."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Instruction(NamedTuple):
    name: str
    opcode: str
    sizes: Counts
    """Bytes of its result."""
    operands: tuple[str, ...]
    called: tuple[str, ...]
    """Computations that it names."""
    trips: int | None
    """Turns of a loop, where the compiler knows them."""
    body: str | None
    """Of a loop."""
    is_product: bool
    is_own_kernel: bool
    """True for a kernel of the library's own."""
    cycles: int
    """The compiler's own estimate, 0 where it says none."""
    text: str
    """As it was printed."""


Program = dict[str, list[Instruction]]
"""A module's computations."""


def parse(text: str) -> Program:
    """Returns the computations of a module as ``compiled.as_text()`` prints it."""
    program: Program = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if header := _HEADER.match(line):
            current = program[header.group(2)] = []
        elif instruction := _INSTRUCTION.match(line):
            current.append(_instruction(*instruction.groups()))
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
        sizes=array_sizes(type_),
        operands=tuple(operands),
        called=(*_CALLED.findall(after), *branches),
        trips=int(trips.group(1)) if trips else None,
        body=body.group(1) if body else None,
        is_product=opcode in ("dot", "convolution") or (opcode == "custom-call" and bool(_LIBRARIES.search(after))),
        is_own_kernel=has_kernel(after),
        cycles=sum(map(int, _CYCLES.findall(after))),
        text=rest,
    )


def whole_program(text: str) -> dict[str, Any]:
    """Returns the counts of a program, loops inside it once, and the chain of what it does one after the other."""
    chain = serial(text)
    more = {"chain": chain.total("kernels"), "factorisations": chain.total("factorisations")}
    counts = asdict(count(parse(text), _entry(text)))
    return {**counts, "cycles": chain.total("cycles"), **more, "loops_inside": str(chain)}


def _entry(text: str) -> str:
    entry = re.search(rf"^ENTRY {_NAME} ", text, re.MULTILINE)
    if entry is None:
        raise ValueError("a module with an entry is needed, but got one without")
    return entry.group(1)


def count(program: Program, name: str) -> Counts:
    """Returns the launches of one turn of a computation, with those of what it calls and of loops inside it."""
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


def _kernel(one: Instruction, sizes: dict[str, Counts], inside: list[list[Instruction]]) -> Counts:
    """Returns the counts of a kernel; an asynchronous one counts where it is done, with its result read and written."""
    is_fusion = one.opcode == "fusion"
    what = one.opcode.removesuffix("-done")
    if what != one.opcode:
        moved = one.sizes + replace(one.sizes, main_bytes=one.sizes.padded_bytes - one.sizes.main_bytes)
    else:
        moved = sum((_read(one, i, sizes, inside) for i in range(len(one.operands))), one.sizes)
    return replace(
        moved,
        kernels=1,
        fusions=is_fusion,
        products=one.is_product or (is_fusion and any(inner.is_product for part in inside for inner in part)),
        copies=what in _MOVES,
        collectives=what in _COLLECTIVES,
        cycles=one.cycles,
    )


_PARTS = ("dynamic-slice", "gather")


def _read(one: Instruction, i: int, sizes: dict[str, Counts], called: list[list[Instruction]]) -> Counts:
    """Returns the bytes of an operand that a kernel reads: of an array of which it takes a slice, that slice."""
    whole = sizes.get(one.operands[i], Counts())
    if one.opcode in _PARTS and i == 0:
        return _smaller(whole, one.sizes)
    inside = [inner for part in called for inner in part if one.opcode == "fusion"]
    names = {inner.name for inner in inside if inner.opcode == "parameter" and inner.operands == (str(i),)}
    users = [inner for inner in inside if names & set(inner.operands)]
    if users and all(user.opcode in _PARTS and user.operands[0] in names for user in users):
        return _smaller(whole, sum((user.sizes for user in users), Counts()))
    return whole


def _smaller(whole: Counts, part: Counts) -> Counts:
    """Returns the smaller of an array and its slice, which lies where the array does."""
    padded = min(whole.padded_bytes, part.padded_bytes)
    main = padded if whole.main_bytes else 0
    return Counts(bytes=min(whole.bytes, part.bytes), padded_bytes=padded, main_bytes=main)


def loop_body(text: str, turns: int) -> Counts:
    """Returns the launches of one of so many turns of a loop; of a body of several turns its share, rounded up.

    Where the compiler does not tell the number of turns, or has several loops of that number, the largest body counts.
    A kernel of the library's own is all turns at once.

    Raises:
      ValueError: if there is no loop.
    """
    program = parse(text)
    own = [(one, part) for part in program.values() for one in part if one.is_own_kernel]
    if own:
        each = [_kernel(one, {other.name: other.sizes for other in part}, []) for one, part in own]
        return replace(_share(sum(each, Counts()), turns), kernels=len(own))
    loops = [one for part in program.values() for one in part if one.opcode == "while" and one.body in program]
    if not loops:
        raise ValueError("a program with a loop is needed, but got one without")
    unrolled = {n: [one for one in loops if one.trips == turns // n] for n in (1, 2, 4)}
    n, candidates = next(((n, loops) for n, loops in unrolled.items() if loops), (1, loops))
    return _share(max((count(program, str(one.body)) for one in candidates), key=lambda body: body.kernels), n)


def _share(counts: Counts, turns: int) -> Counts:
    return Counts(*(-(-value // turns) for value in astuple(counts)))


_FACTORISES = re.compile(
    r'custom_call_target="(Cholesky|InvertDiagBlocks\w*|cusolver_potrf\w*|__cublas\$triangularSolve)"'
)


class Turns(NamedTuple):
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
        """Returns all "kernels", "factorisations" or "cycles" that come one after the other."""
        return (self.turns or 1) * (int(getattr(self, name)) + sum(loop.total(name) for loop in self.inner))

    def __str__(self) -> str:
        """Returns the launches of a turn and the turns of inner loops, whose own inner loops are in brackets.

        Example:
          >>> print(Turns(1, 50, 0, 0, (Turns(100, 7, 0, 0, (Turns(None, 3, 1, 0, ()),)),)))
          50 + 100 x (7 + n x 3)
        """
        each = ("n" if loop.turns is None else loop.turns for loop in self.inner)
        inside = (f" + {n} x {f'({loop})' if loop.inner else loop}" for n, loop in zip(each, self.inner, strict=True))
        return f"{self.kernels}{''.join(inside)}"


def serial(text: str) -> Turns:
    """Returns the loops of a module as ``compiled.as_text()`` prints it.

    Raises:
      ValueError: if it has no entry.
    """
    return _turns(parse(text), _entry(text), 1)


def _turns(program: Program, name: str, turns: int | None) -> Turns:
    """Returns what a computation does that is repeated so often; of branches the longest counts."""
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
    """Yields kernels, loops and branches, also those of computations that are called."""
    for one in program[name]:
        if one.opcode == "call":
            for part in one.called:
                yield from _launched(program, part)
        elif one.opcode in ("while", "conditional") or not (
            one.opcode in FREE | CALLS or one.opcode.endswith("-start")
        ):
            yield one


def _trips(program: Program, loop: Instruction) -> int | None:
    """Returns the turns of a loop: as the compiler says, or as its condition compares the counter with a constant."""
    condition = program.get(next((part for part in loop.called if part != loop.body), ""), [])
    if loop.trips is not None or not condition:
        return loop.trips
    if condition[-1].opcode != "compare" or "direction=LT" not in condition[-1].text:
        return None
    bounds = [re.search(r"constant\((\d+)\)", one.text) for one in condition if one.name in condition[-1].operands]
    numbers = [int(bound.group(1)) for bound in bounds if bound]
    return numbers[0] if len(numbers) == 1 else None


_WIDTH = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "f32": 4}
_WIDTH |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "s4": 1, "u4": 1}
_ARRAY = re.compile(r"\b([a-z]+[0-9]*)\[([0-9,]*)\](?:\{([0-9,]*)(?::([^}]*))?\})?")


def array_sizes(type_: str) -> Counts:
    """Returns the bytes of all arrays that a type names, as they lie in memory.

    On a TPU the innermost dimension comes in lanes of 128. ``S(1)`` is a memory on the chip.

    Example:
      >>> sizes = array_sizes("(f32[10,17,32]{2,1,0:T(8,128)}, f32[10,17,32]{2,1,0:T(8,128)S(1)}, pred[], s32[3])")
      >>> sizes.bytes - 13, sizes.padded_bytes - 13, sizes.main_bytes - 13
      (43520, 245760, 122880)
    """
    total = Counts()
    for kind, sizes, order, tiling in _ARRAY.findall(type_):
        shape, width, tile = _numbers(sizes), _WIDTH.get(kind, 0), re.search(r"T\(([0-9,]+)\)", tiling)
        from_innermost = [shape[i] for i in _numbers(order)] if order else shape[::-1]
        inner = _numbers(tile.group(1))[::-1] if tile and shape else []
        from_innermost += [1] * (len(inner) - len(from_innermost))
        tiled = [-(-size // part) * part for size, part in zip(from_innermost, inner, strict=False)]
        padded = width * math.prod([*tiled, *from_innermost[len(inner) :]])
        main = 0 if re.search(r"S\([1-9]", tiling) else padded
        total += Counts(bytes=width * math.prod(shape), padded_bytes=padded, main_bytes=main)
    return total


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]
