"""Who imports whom: the public names, what comes with them, and the order of the subpackages."""

import ast
import graphlib
from pathlib import Path

import pytest

import dre_jax
from dre_jax.methods import registry
from tests.processes import run_python

PACKAGE = Path(dre_jax.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# A subpackage may import from those of the rows above its own, and of its own row.
SUBPACKAGES = (
    ("errors", "version"),
    ("checks",),
    ("runtime",),
    ("native",),
    ("data", "losses", "optim"),
    ("nn", "search", "space"),
    ("gp",),
    ("methods",),
    ("suggest",),
    ("hpob", "report"),
    ("tuning",),
    ("functions",),
    ("cli",),
    ("testing",),  # nothing of the package imports it
)
LEVEL = {subpackage: level for level, subpackages in enumerate(SUBPACKAGES) for subpackage in subpackages}


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported(path):
    """Every module that a file imports, anywhere in it, as full names."""
    inside = module_name(path)
    package = inside if path.name == "__init__.py" else inside[:-1]
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            result |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return result


def test_the_scan_sees_imports():
    """The oracle of the tests below."""
    assert "dre_jax.errors.DreError" in imported(PACKAGE / "__init__.py")
    assert "optax" in imported(PACKAGE / "optim" / "schedule.py")
    assert len(SOURCES) > 40


IMPORTS = (
    (["dre_jax"], ["matplotlib", "optuna", "torch", "sklearn", "orbax", "typer"]),
    (["dre_jax.tuning"], ["scipy.special"]),  # a fifth of the time to the first trial
    # Nothing outside the command line draws or saves before it is asked to.
    ([f"dre_jax.{one}" for one in LEVEL if one != "cli"], ["matplotlib.pyplot", "optuna", "torch", "sklearn", "orbax"]),
)
"""Modules, one group after the other in one process, and what none of them imports."""


def test_imports_are_light():
    lines = ["import sys"]
    for modules, heavy in IMPORTS:
        lines += [f"import {', '.join(modules)}", f"print([name for name in {heavy} if name in sys.modules])"]
    assert run_python("\n".join(lines)).stdout == "[]\n" * len(IMPORTS)


def test_public_names_exist():
    assert dre_jax.__all__
    namespace = {}
    exec("from dre_jax import *", namespace)
    assert all(namespace[name] is not None for name in dre_jax.__all__)


@pytest.mark.parametrize(("library", "home"), [("flax", "nn/networks.py"), ("orbax", "methods/storage/steps.py")])
def test_one_home_for(library, home):
    users = [path for path in SOURCES if library in {name.split(".")[0] for name in imported(path)}]
    assert [path.relative_to(PACKAGE).as_posix() for path in users] == [home]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_nothing_below_imports_something_above(path):
    subpackage = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if subpackage in ("__init__", "__main__"):
        return
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "dre_jax" and len(parts) > 1 and parts[1] in LEVEL:
            assert LEVEL[parts[1]] <= LEVEL[subpackage], f"{path.relative_to(PACKAGE)} imports {name}"
            assert {parts[1], subpackage} != {"hpob", "report"}, "they share result files alone"


def test_no_file_imports_back():
    """Neither at the top of a file, inside of a function, nor for type checking alone."""
    modules = {".".join(module_name(path)) for path in SOURCES}
    graph = {}
    for path in SOURCES:
        name = ".".join(module_name(path))
        if path.name != "__init__.py":  # a package re-exports from its own modules
            graph[name] = (imported(path) & modules) - {name}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the modules


def folder_graph():
    """The folders that each folder imports from, of `dre_jax` and inside of it.

    An `__init__.py` that defines nothing re-exports what is below: that is no import of the folder. Whoever imports
    such a name from the folder imports the folder.
    """
    paths = {".".join(module_name(path)): path for path in SOURCES}
    graph = {path.parent: set() for path in SOURCES}
    for path in SOURCES:
        targets = {paths[name].parent for name in imported(path) & paths.keys()}
        if path.name == "__init__.py" and defines_nothing(path):
            targets = {target for target in targets if not target.is_relative_to(path.parent)}
        if path.name != "__main__.py":  # of the command line
            graph[path.parent] |= targets - {path.parent}
    by_name = {PACKAGE.joinpath("methods", *module.split(".")).parent for module in registry._MODULES}
    graph[PACKAGE / "methods"] |= by_name  # the registry imports them by their names
    return {name_of(folder): {name_of(target) for target in targets} for folder, targets in graph.items()}


def defines_nothing(path):
    """Whether a file has no function and no class, other than those by which Python reads a module."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)]
    return all(name.startswith("__") for name in names)


def name_of(folder):
    return folder.relative_to(PACKAGE.parent).as_posix()


def test_no_folder_imports_back():
    graph = folder_graph()
    assert "dre_jax/optim" in graph["dre_jax/gp"]
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the folders
