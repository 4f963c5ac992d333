"""Arithmetic expressions in features, such as the laws of publications: ``1.79 * N**-0.713 * D**0.307``."""

import ast
import math
import operator
from collections.abc import Callable, Mapping

from dre_jax.errors import ConfigError

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}


def evaluate(expression: str, names: Mapping[str, float]) -> float:
    """Returns the value of an expression of numbers, names, brackets, + - * / and **, and of nothing else.

    Raises:
      ConfigError: for anything else in the expression, and for a value that is not a finite number.

    Example:
      >>> evaluate("2 * N**-0.5 + 1", {"N": 16.0})
      1.5
    """
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body, names)
    except (SyntaxError, ArithmeticError, ValueError) as error:
        raise ConfigError(f"{expression!r} is not an expression with a value: {error}") from None
    if not math.isfinite(value):
        raise ConfigError(f"{expression!r} must be a finite number, but is {value}")
    return value


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in names:
            return float(names[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names), _value(right, names))
    rule = f"an expression has numbers, {', '.join(names)}, brackets, + - * / and **"
    raise ConfigError(f"{rule}, but got {ast.unparse(node)!r}")
