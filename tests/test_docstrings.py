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


def rooms():
    inside = [module.name for module in pkgutil.iter_modules(dre_jax.__path__) if module.ispkg]
    for name in [*inside, "data.bundled", "errors", "tuning.optuna", "tuning.sklearn"]:
        module = importlib.import_module(f"dre_jax.{name}")
        if hasattr(module, "__all__"):
            yield module


NAMES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in rooms()
    for name in module.__all__
    if callable(getattr(module, name)) and getattr(getattr(module, name), "__module__", "").startswith("dre_jax")
}
TOP = [getattr(dre_jax, name) for name in dre_jax.__all__ if name != "__version__"]


def is_record(thing):
    return inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or hasattr(thing, "_fields"))


def is_error(thing):
    return inspect.isclass(thing) and issubclass(thing, (Exception, Warning))


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


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_explained(name):
    thing = NAMES[name]
    text = doc(thing)
    assert text, "no docstring"
    called = call(thing)
    if called is not None:
        given = [n for n in inspect.signature(called).parameters if n not in ("self", "args", "kwargs")]
        if len(given) > 1 and not re.search(r"[Aa]rguments (and result )?as in `", text):
            missing = [argument for argument in given if not names(text, argument)]
            assert not missing, f"arguments that the docstring does not name: {missing}"
        if any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(source(called))):
            assert "Raises" in text, "it raises, and does not say so"
    if is_record(thing):
        assert not (missing := bare_fields(thing, text)), f"fields without a docstring: {missing}"


def bare_fields(thing, text):
    """Public fields without a docstring below them that the class's own does not name either."""
    body = [*source(thing).body, None]
    return [
        node.target.id
        for node, after in pairwise(body)
        if isinstance(node, ast.AnnAssign)
        and not node.target.id.startswith("_")
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
        and not names(text, node.target.id)
    ]


NEEDED = [
    name
    for name, thing in NAMES.items()
    if name not in WITHOUT_EXAMPLE
    and not is_error(thing)
    and (any(thing is other for other in TOP) or (name.split(".")[1] in EXAMPLES and not is_record(thing)))
]


@pytest.mark.parametrize("name", NEEDED)
def test_a_name_that_users_call_has_an_example(name):
    assert ">>>" in doc(NAMES[name])


def test_the_rules_see_what_they_should():
    """The oracle of the tests above."""

    class Record:
        def __init__(self, first, second):
            """Takes `first`."""

    assert "dre_jax.tuning.Optimizer" in NAMES
    assert {"dre_jax.search.run_tasks", "dre_jax.losses.listmle"} <= set(NEEDED)
    assert names(doc(Record), "first")
    assert not names(doc(Record), "second")
    assert len(NAMES) > 100
