"""The `repr` of objects with many parts: one line, without the numbers."""

import reprlib
from typing import Any

_shorten = reprlib.Repr()
_shorten.maxlist = _shorten.maxtuple = _shorten.maxdict = 8
_shorten.maxstring = _shorten.maxother = 80


def summary(subject: object, **fields: Any) -> str:
    """Returns the name of an object's class with the fields that are not None; of many entries the first.

    Example:
      >>> summary(object(), hyperparameters=[f"x{i}" for i in range(30)], direction="minimize", best=None)
      "object(hyperparameters=['x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7', ...], direction='minimize')"
    """
    known = (f"{name}={_shorten.repr(value)}" for name, value in fields.items() if value is not None)
    return f"{type(subject).__name__}({', '.join(known)})"
