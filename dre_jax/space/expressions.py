"""Formulas as text: arithmetic and comparisons of named values, as Python writes them.

The text is parsed and computed here. It never runs as Python, so a formula in a stranger's file can only compute.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, reduce
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.runtime.arrays import namespace

_MOST_CHARACTERS = 1000

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS = {"abs": 1, "ceil": 1, "exp": 1, "floor": 1, "log": 1, "log2": 1, "log10": 1, "sqrt": 1, "max": 2, "min": 2}
"""Names of functions with their least numbers of arguments."""
_ARRAY_NAMES = {"max": "maximum", "min": "minimum"}


@lru_cache(maxsize=256)
def parse(text: str) -> ast.expr:
    """Returns the tree of a formula, the same one at each call: every check of a configuration reads it.

    Raises:
      ConfigError: if the text is no formula; the message names the part that is not.

    Example:
      >>> sorted(names_in(parse("2 * sqrt(width) <= depth + 1")))
      ['depth', 'width']
    """
    rule = "a formula must consist of names, numbers, comparisons, arithmetic, and, or, not"
    try:
        tree = ast.parse(text, mode="eval").body if len(text) <= _MOST_CHARACTERS else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        raise ConfigError(f"{rule}, in at most {_MOST_CHARACTERS} characters, but got {text[:200]!r}")
    for node in _nodes(tree):
        if not _is_known(node):
            functions = ", ".join(_FUNCTIONS)
            raise ConfigError(f"{rule}, and of {functions}, but {ast.unparse(node)!r} of {text!r} is something else")
    return tree


def names_in(tree: ast.expr) -> tuple[str, ...]:
    """Returns the names of the values in a formula, in the order of their first use."""
    names = [(node.lineno, node.col_offset, node.id) for node in _nodes(tree) if isinstance(node, ast.Name)]
    return tuple(dict.fromkeys(name for *_, name in sorted(names)))


def evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """Returns the result of a formula for at least one value by name: numbers, or arrays of NumPy or JAX."""
    xp = namespace(next(iter(values.values())))

    def result(child: ast.expr) -> Any:
        return evaluate(child, values)

    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=value):
            # Whole numbers have powers of millions of digits.
            return float(value) if type(value) is int else value
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return xp.logical_not(result(operand))
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](result(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](result(left), result(right))
        case ast.BoolOp(op=op, values=parts):
            return reduce(xp.logical_and if isinstance(op, ast.And) else xp.logical_or, map(result, parts))
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [*map(result, [left, *others])]
            pairs = zip(ops, sides, sides[1:], strict=False)
            return reduce(xp.logical_and, [_OPERATORS[type(op)](a, b) for op, a, b in pairs])
        case ast.Call(func=ast.Name(id=name), args=args):
            function = getattr(xp, _ARRAY_NAMES.get(name, name))
            return reduce(function, map(result, args)) if name in _ARRAY_NAMES else function(*map(result, args))
    raise AssertionError(node)


def _nodes(tree: ast.expr) -> Iterator[ast.expr]:
    """Yields the expressions of a tree, without the names of functions."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        is_function = isinstance(tree, ast.Call) and child is tree.func and isinstance(child, ast.Name)
        if isinstance(child, ast.expr) and not is_function:
            yield from _nodes(child)


def _is_known(node: ast.expr) -> bool:
    """Returns whether `evaluate` knows an expression."""
    match node:
        case ast.Name() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=value):
            return value is None or isinstance(value, (bool, int, float, str))
        case ast.UnaryOp(op=op) | ast.BinOp(op=op):
            return type(op) in _OPERATORS
        case ast.Compare(ops=ops):
            return all(type(op) in _OPERATORS for op in ops)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            least = _FUNCTIONS.get(name, 0)
            return bool(least) and (len(args) == 1 if least == 1 else len(args) >= least)
    return False
