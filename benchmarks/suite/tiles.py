"""Bytes of arrays as they lie in memory: layouts and tiles, as XLA prints them behind a shape."""

from __future__ import annotations

import math
import re

WIDTH = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "f32": 4}
WIDTH |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "s4": 1, "u4": 1}
_ARRAY = re.compile(r"\b([a-z]+[0-9]*)\[([0-9,]*)\](?:\{([0-9,]*)(?::([^}]*))?\})?")
_TILE = re.compile(r"T\(([0-9,]+)\)")
_MAIN_MEMORY = re.compile(r"^(?!.*S\([1-9])")


def shape_bytes(text: str) -> int:
    """Bytes of the numbers of all arrays that are named in a type.

    Example:
      >>> shape_bytes("(f32[10,32]{1,0}, pred[], s32[3])")
      1293
    """
    return sum(WIDTH.get(kind, 0) * math.prod(_numbers(sizes)) for kind, sizes, _, _ in _ARRAY.findall(text))


def padded_bytes(text: str) -> int:
    """`shape_bytes` with what tiles are filled up with: on a TPU the innermost dimension comes in lanes of 128.

    Example:
      >>> padded_bytes("f32[10,17,32]{2,1,0:T(8,128)}"), 10 * 24 * 128 * 4
      (122880, 122880)
    """
    return sum(_padded(*found) for found in _ARRAY.findall(text))


def main_memory_bytes(text: str) -> int:
    """`padded_bytes` of the arrays that lie in the device's main memory, not in one on the chip.

    Example:
      >>> main_memory_bytes("(f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)S(1)})")
      4096
    """
    return sum(_padded(*found) for found in _ARRAY.findall(text) if _MAIN_MEMORY.match(found[3]))


def _padded(kind: str, sizes: str, order: str, tiling: str) -> int:
    shape, tile = _numbers(sizes), _TILE.search(tiling)
    from_innermost = [shape[i] for i in _numbers(order)] if order else shape[::-1]
    inner = _numbers(tile.group(1))[::-1] if tile and shape else []
    from_innermost += [1] * (len(inner) - len(from_innermost))
    filled = [-(-size // part) * part for size, part in zip(from_innermost, inner, strict=False)]
    return WIDTH.get(kind, 0) * math.prod([*filled, *from_innermost[len(inner) :]])


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]
