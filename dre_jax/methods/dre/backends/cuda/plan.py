"""The kernel's plan for a model and the sizes of its lists: layout of the parameters, shared memory, threads."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, NamedTuple

from dre_jax.methods.dre.backends.cuda.parts import Part, parts_of
from dre_jax.methods.dre.model.model_config import ModelConfig

WIDEST = 64  # a layer, or the columns
LONGEST = 512  # items of a list
_HEADER = 32  # floats at the start of the scratch memory
_MOMENTS = {4: 80, 8: 48}  # by warps: most weights of a thread that keeps moments in registers

Precision = Literal["float32", "tf32"]


class Limits(NamedTuple):
    """The resources of a device that a plan shares out."""

    architecture: int
    """Ten times the compute capability: 90 for an H100."""
    shared_bytes: int
    """Maximum shared memory of a block."""
    shared_bytes_of_all: int
    """Shared memory of a multiprocessor."""
    multiprocessors: int
    driver_major: int = 99
    """The newest CUDA that the driver supports, 13 for example."""


class Sizes(NamedTuple):
    """Sizes of the lists of a training."""

    columns: int
    support: int
    """Slots; the same for the query."""
    query: int
    lists: int = 1
    """Number of lists of a step."""


@dataclass(frozen=True)
class Plan:
    """The constants of a kernel, and the numbers that its callers need."""

    constants: str
    """C++ in front of the kernel."""
    parts: tuple[Part, ...]
    """The parts of the parameters, in the order of their positions."""
    positions: tuple[int, ...]
    """First float of each part in global memory; rows of matrices and vectors have `stride` floats."""
    stride: int
    parameters: int
    """Floats of a member."""
    x_stride: int
    """Floats of a row of configurations."""
    threads: int
    shared_bytes: int
    scratch: int
    """Floats of a block in global memory."""
    shares_deep_set: bool
    group: int
    """Blocks that share the lists of a member's step."""

    @property
    def blocks_wait(self) -> bool:
        """Whether blocks wait for each other; their counters in global memory must be zero at the start."""
        return self.shares_deep_set or self.group > 1

    def number(self, architecture: int) -> int:
        """Returns a number of 63 bits for the kernel on an architecture, the same in every process."""
        text = f"{architecture} {self.threads} {self.shared_bytes} {self.constants}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def scratch_floats(self, runs: int, members: int) -> int:
        """Returns the floats of global memory that a launch needs."""
        exchange = runs * (2 * members * self.stride + 32) if self.shares_deep_set else 0
        return _HEADER + runs * members * self.group * self.scratch + exchange


def round_up(n: int, step: int) -> int:
    """Returns the next multiple of ``step``."""
    return -(-n // step) * step


def why_unsupported(model: ModelConfig, sizes: Sizes) -> str | None:
    """Returns why the kernel does not support a model and lists, in a few words; None if it does."""
    widths = (*model.hidden, *(() if model.context == "none" else (*model.phi, *model.rho)))
    if model.range_limit is not None:
        return "scores have a range controller"
    if max(widths) > WIDEST:
        return f"a layer is wider than {WIDEST}"
    if sizes.columns > WIDEST:
        return f"there are more than {WIDEST} columns"
    if max(sizes.support, sizes.query) > LONGEST:
        return f"a list is longer than {LONGEST}"
    return None


def plan_for(
    model: ModelConfig, sizes: Sizes, limits: Limits, blocks: int, precision: Precision = "float32"
) -> Plan | None:
    """Returns the plan for ``blocks`` runs and members; None if a block's weights do not fit.

    Few blocks get eight warps each; otherwise a block has four, if two blocks fit on a multiprocessor.
    The lists of a step are shared by several blocks of a member, as far as there are multiprocessors. Activations that
    do not fit in shared memory lie in global memory.
    """
    warps = 8 if blocks <= limits.multiprocessors else 4
    group = 1 if model.context == "shared" else max(1, min(sizes.lists, limits.multiprocessors // blocks))
    for in_shared_memory in (True, False):
        draft = _Draft(model, sizes, precision, warps, in_shared_memory, group)
        if draft.shared_bytes <= limits.shared_bytes:
            wider = replace(draft, warps=8)
            is_alone = draft.blocks_beside(limits) == 1 and wider.shared_bytes <= limits.shared_bytes
            return (wider if is_alone else draft).plan(limits)
    return None


@dataclass(frozen=True)
class _Draft:
    """The numbers of a plan, whether they fit or not."""

    model: ModelConfig
    sizes: Sizes
    precision: Precision
    warps: int
    activations_shared: bool
    group: int

    @property
    def deep(self) -> bool:
        return self.model.context != "none"

    @property
    def hidden(self) -> list[int]:
        return [round_up(width, 8) for width in self.model.hidden]

    @property
    def phi(self) -> list[int]:
        return [round_up(width, 8) for width in self.model.phi] if self.deep else [8]

    @property
    def phi_rows(self) -> int:
        """Layers of the deep set that map rows; the last layer before the mean is linear, so it maps the mean."""
        return len(self.phi) - 1 if self.deep else 0

    @property
    def columns(self) -> int:
        return round_up(self.sizes.columns, 8)

    @property
    def stride(self) -> int:
        widths = [*self.hidden, *((*self.phi, *self.model.rho) if self.deep else ())]
        if self.deep and not self.phi_rows:
            widths.append(self.columns)  # their mean is a row of the deep set
        return 32 if max(widths) <= 32 else 64

    @property
    def x_stride(self) -> int:
        return 16 if self.columns <= 16 else 32 if self.columns <= 32 else 64

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def query(self) -> int:
        return max(8, round_up(self.sizes.query, 8))

    @property
    def support(self) -> int:
        return max(8, round_up(self.sizes.support, 8)) if self.deep else 8

    @property
    def items(self) -> int:
        """Items of a lane of the warp that computes the loss."""
        return -(-self.query // 32)

    @property
    def buffers(self) -> int:
        """Arrays of activations: one a layer, and another one if a warp has more tiles than registers hold."""
        tiles = round_up(round_up(self.query, 16) // 16, self.warps) // self.warps
        at_once = 2 if self.stride == 32 else 1
        return len(self.hidden) + (tiles > at_once)

    @property
    def chain(self) -> list[tuple[int, int, str, str, bool]]:
        """Layers that a list passes as one row: inputs, outputs, kernel, bias, and whether a ReLU follows."""
        if not self.deep:
            return []
        last = len(self.phi) - 1
        rho = [round_up(width, 8) for width in self.model.rho]
        inputs = self.columns if last == 0 else self.phi[-2]
        kernel = "phi_0_kernel_x" if last == 0 else f"phi_{last}_kernel"
        chain = [(inputs, self.phi[-1], kernel, f"phi_{last}_bias", False)]
        for i, (width_in, width) in enumerate(zip((self.phi[-1], *rho), rho, strict=False)):
            chain.append((width_in, width, f"rho_{i}_kernel", f"rho_{i}_bias", i + 1 < len(rho)))
        return [*chain, (rho[-1], self.hidden[0], "hidden_0_kernel_context", "hidden_0_bias", False)]

    @property
    def parts(self) -> list[Part]:
        """The matrices, then the vectors."""
        return sorted(parts_of(self.model, self.sizes.columns), key=lambda part: part.is_vector)

    @property
    def positions(self) -> list[int]:
        heights = [1 if part.is_vector else round_up(part.size, 8) for part in self.parts]
        return [0, *accumulate(height * self.stride for height in heights)]

    @property
    def position_by_name(self) -> dict[str, int]:
        return {part.name: position for part, position in zip(self.parts, self.positions, strict=False)}

    @property
    def matrices(self) -> int:
        return next(position for part, position in zip(self.parts, self.positions, strict=False) if part.is_vector)

    def _owned_by_pieces(self, inputs: int, outputs: int, warps: int) -> int:
        """Returns the weights of a thread of a matrix, as `Pieces` in optimiser.cuh."""
        high = -(-inputs // 16)
        wide = 2 if outputs % 16 == 0 and high * (outputs // 8) > warps else 1
        return -(-(high * (outputs // 8 // wide)) // warps) * wide * 4

    def _owned_by_rows(self, inputs: int, outputs: int) -> int:
        return -(-(inputs * (outputs // 4)) // self.threads) * 4

    @property
    def owned(self) -> dict[str, int]:
        """Weights of a thread by matrix: hidden layers from last to second, the deep set, the first layer, chain."""
        hidden = [self.columns, *self.hidden]
        owned = {
            f"hidden_{i}": self._owned_by_pieces(hidden[i], hidden[i + 1], self.warps)
            for i in range(len(self.hidden) - 1, 0, -1)
        }
        phi = [self.columns, *self.phi]
        owned |= {f"phi_{i}": self._owned_by_pieces(phi[i], phi[i + 1], self.warps) for i in range(self.phi_rows)}
        # The warp that computes the chain has no part of the first layer's gradient.
        owned["hidden_0"] = self._owned_by_pieces(hidden[0], hidden[1], self.warps - self.deep)
        return owned | {f"chain_{i}": self._owned_by_rows(*layer[:2]) for i, layer in enumerate(self.chain)}

    @property
    def in_registers(self) -> int:
        """Weights of a thread with moments in registers: not those of the chain, nor of the first layer beside it."""
        if sum(self.owned.values()) > _MOMENTS[self.warps]:
            return 0
        in_memory = ("hidden_0", "chain") if self.deep else ()
        return sum(count for name, count in self.owned.items() if not name.startswith(in_memory))

    @property
    def shared_arrays(self) -> list[tuple[str, str, int]]:
        """Type, name and length of the arrays in shared memory, all of four bytes an element."""
        small, stride, rows = self.positions[-1] - self.matrices, self.stride, self.support
        chain = len(self.chain)
        return [
            ("float", "w", self.positions[-1]),
            ("float", "h", self.buffers * self.query * stride if self.activations_shared else 4),
            ("float", "x", self.query * self.x_stride),
            ("float", "xs", 2 * rows * self.x_stride if self.deep else 4),
            ("float", "ph", (2 * self.phi_rows - 1) * rows * stride if self.phi_rows else 4),
            ("float", "vectors", (chain + 1) * stride),
            ("float", "gradients", max(1, chain) * stride),
            ("float", "mean_gradient", stride),
            ("float", "chain_bias", stride if self.deep and not self.phi_rows else 4),
            ("float", "mean_response", 4),
            ("float", "ys", 2 * rows if self.deep else 4),
            ("float", "gs", small),
            ("float", "ms", small),
            ("float", "vs", small),
            ("float", "sum_gs", small if self.sizes.lists > 1 else 4),
            ("float", "scores", 32 * self.items),
            ("float", "score_gradient", 32 * self.items),
            ("float", "scan", 64 * self.items),
            ("float", "weight", 2 * self.query),
            ("float", "part", self.warps * stride),
            ("unsigned", "bounds", 2 * self.query),
            ("int", "row", 2 * self.query),
            ("int", "support", 2 * rows if self.deep else 4),
            ("int", "counts", 4),
            ("int", "number", 4),
        ]

    @property
    def shared_bytes(self) -> int:
        return 4 * sum(length for _, _, length in self.shared_arrays)

    @property
    def scratch_parts(self) -> list[int]:
        """Floats of a block in global memory: activations, moments, gradients."""
        owned = sum(self.owned.values()) * self.threads
        activations = 0 if self.activations_shared else self.buffers * self.query * self.stride
        moments = 2 * (sum(self.owned.values()) - self.in_registers) * self.threads
        gradients = owned if self.sizes.lists > 1 else 0
        return [activations, moments, 2 * self.exchanged + 32 if self.group > 1 else gradients]

    @property
    def exchanged(self) -> int:
        """Floats that a block of a group shows to the others: gradients of all its parameters, and the loss."""
        small = self.positions[-1] - self.matrices
        return sum(self.owned.values()) * self.threads + small + 32

    def blocks_beside(self, limits: Limits) -> int:
        """Returns how many blocks share a multiprocessor."""
        room = limits.shared_bytes_of_all // (self.shared_bytes + 1024)
        return min(2, room) if self.warps == 4 else 1

    def plan(self, limits: Limits) -> Plan:
        return Plan(
            constants="\n".join(self._constants(self.blocks_beside(limits))),
            parts=tuple(self.parts),
            positions=tuple(self.positions[:-1]),
            stride=self.stride,
            parameters=self.positions[-1],
            x_stride=self.x_stride,
            threads=self.threads,
            shared_bytes=self.shared_bytes,
            scratch=sum(self.scratch_parts),
            shares_deep_set=self.model.context == "shared",
            group=self.group,
        )

    def _constants(self, blocks: int) -> Iterator[str]:
        positions, owned, chain = self.position_by_name, self.owned, self.chain
        owned_positions = dict(zip(owned, [0, *accumulate(owned.values())], strict=False))

        def vectors(name: str) -> int:
            return positions[name] - self.matrices

        layers = range(len(self.hidden))
        phi_at = [positions[f"phi_{i}_kernel{'' if i else '_x'}"] for i in range(len(self.phi))] if self.deep else [0]
        yield from _numbers(
            WARPS=self.warps,
            THREADS=self.threads,
            BLOCKS=blocks,
            S=self.stride,
            XS=self.x_stride,
            D8=self.columns,
            QP=self.query,
            KP=self.support,
            QS=self.sizes.query,
            KS=self.sizes.support,
            DEEP=self.deep,
            SHARED=self.model.context == "shared",
            SPLIT=self.precision == "float32",
            SEVERAL_LISTS=(self.sizes.lists > 1),
            ACTIVATIONS_SHARED=self.activations_shared,
            IN_REGISTERS=self.in_registers,
            OWNED=sum(owned.values()),
            BUFFERS=self.buffers,
            LAYERS=len(self.hidden),
            EQUAL_WIDTHS=len(set(self.hidden)) == 1 and len(self.hidden) > 1,
            PHI_ROWS=self.phi_rows,
            DEEP_WIDTH=self.phi[max(0, self.phi_rows - 1)],
            CHAIN=len(chain),
            MATRICES=self.matrices,
            SMALL=self.positions[-1] - self.matrices,
            PARAMETERS=self.positions[-1],
            OUT_AT=vectors("out_kernel"),
            OUT_BIAS_AT=vectors("out_bias"),
            RESPONSE_AT=vectors("phi_0_kernel_response") if self.deep else 0,
            GROUP=self.group,
            EXCHANGED=self.exchanged,
            HEADER=_HEADER,
            SCRATCH=sum(self.scratch_parts),
            MOMENTS_AT=self.scratch_parts[0],
            GRADIENT_AT=sum(self.scratch_parts[:2]),
        )
        yield from _arrays(
            HIDDEN=self.hidden,
            HIDDEN_AT=[positions[f"hidden_{i}_kernel{'_x' if i == 0 else ''}"] for i in layers],
            HIDDEN_BIAS_AT=[vectors(f"hidden_{i}_bias") for i in layers],
            HIDDEN_OWNED_AT=[owned_positions[f"hidden_{i}"] for i in layers],
            PHI=self.phi,
            PHI_AT=phi_at,
            PHI_BIAS_AT=[vectors(f"phi_{i}_bias") for i in range(len(self.phi))] if self.deep else [0],
            PHI_OWNED_AT=[owned_positions[f"phi_{i}"] for i in range(self.phi_rows)] or [0],
            CHAIN_IN=[layer[0] for layer in chain] or [8],
            CHAIN_OUT=[layer[1] for layer in chain] or [8],
            CHAIN_AT=[positions[layer[2]] for layer in chain] or [0],
            CHAIN_BIAS_AT=[vectors(layer[3]) for layer in chain] or [0],
            CHAIN_RELU=[int(layer[4]) for layer in chain] or [0],
            CHAIN_OWNED_AT=[owned_positions[f"chain_{i}"] for i in range(len(chain))] or [0],
        )
        yield "struct Shared {"
        yield from (f"  {kind} {name}[{length}];" for kind, name, length in self.shared_arrays)
        yield "};"


def _numbers(**values: int) -> Iterator[str]:
    yield from (f"constexpr int {name} = {int(value)};" for name, value in values.items())


def _arrays(**values: list[int]) -> Iterator[str]:
    for name, items in values.items():
        yield f"constexpr int {name}[{len(items)}] = {{{', '.join(map(str, items))}}};"
