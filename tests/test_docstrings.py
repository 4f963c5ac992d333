"""What a public name's docstring must say. Public is what a part of the package has in its `__all__`.

- A function or constructor names each of its arguments, in `Args:` or in a sentence, or says "Arguments as in" another.
- A record has a docstring below each field, or names the field in its own.
- What raises an error itself says so: "Raises".
- What a user calls has an example: the functions and classes of `dre_jax`, and the functions of `EXAMPLES`.
"""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import textwrap
from itertools import pairwise

import pytest

import dre_jax

EXAMPLES = ("losses", "report", "tuning")
WITHOUT_EXAMPLE = {  # they need files that do not ship
    "dre_jax.tuning.hpob_space",
}


def subpackages():
    inside = [module.name for module in pkgutil.iter_modules(dre_jax.__path__) if module.ispkg]
    for name in [*inside, "data.bundled", "errors", "tuning.optuna", "tuning.sklearn"]:
        module = importlib.import_module(f"dre_jax.{name}")
        if hasattr(module, "__all__"):
            yield module


NAMES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in subpackages()
    for name in module.__all__
    if callable(getattr(module, name)) and getattr(getattr(module, name), "__module__", "").startswith("dre_jax")
}
TOP = {id(getattr(dre_jax, name)) for name in dre_jax.__all__}


def is_record(thing):
    return inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or hasattr(thing, "_fields"))


def source(thing):
    return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))).body[0]


def doc(thing):
    """Its docstring; of a class that has a constructor, with that of the constructor."""
    own = inspect.getdoc(thing) or ""
    return own + "\n" + (getattr(vars(thing).get("__init__"), "__doc__", "") or "") if inspect.isclass(thing) else own


def call(thing):
    """What is called, by source, or None for records and protocols, which have no constructor of their own."""
    if not inspect.isclass(thing):
        return inspect.unwrap(thing)
    return vars(thing).get("__init__") if not is_record(thing) and not getattr(thing, "_is_protocol", False) else None


def names(text, name):
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)


def bare_fields(thing):
    """Public fields without a docstring below them that the class's own does not name either."""
    return [
        node.target.id
        for node, after in pairwise([*source(thing).body, None])
        if isinstance(node, ast.AnnAssign)
        and not node.target.id.startswith("_")
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
        and not names(doc(thing), node.target.id)
    ]


def needs_example(name):
    if name in WITHOUT_EXAMPLE or (inspect.isclass(NAMES[name]) and issubclass(NAMES[name], (Exception, Warning))):
        return False
    return id(NAMES[name]) in TOP or (name.split(".")[1] in EXAMPLES and not is_record(NAMES[name]))


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_explained(name):
    thing, called = NAMES[name], call(NAMES[name])
    text = doc(thing)
    if called is not None:
        inputs = [n for n in inspect.signature(called).parameters if n not in ("self", "args", "kwargs")]
        if len(inputs) > 1 and not re.search(r"[Aa]rguments (and result )?as in `", text):
            missing = [argument for argument in inputs if not names(text, argument)]
            assert not missing, f"arguments that the docstring does not name: {missing}"
        if any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(source(called))):
            assert "Raises" in text, "it raises, and does not say so"
    if is_record(thing):
        assert not bare_fields(thing), "fields without a docstring"
    assert ">>>" in text or not needs_example(name), "no example"
