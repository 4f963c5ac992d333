"""The reference: a page for each part of the package that has public names, and one of all files.

Docstrings name things in single backticks. Here such a name becomes a link wherever it is documented once, and code
elsewhere.
"""

import ast
import importlib
import inspect
import pkgutil
from itertools import groupby
from pathlib import Path

import dre_jax

FOLDER = "reference/api"
FILES = "reference/files.rst"
MORE = (
    "data.bundled",
    "errors",
    "methods.dre",
    "tuning.optuna",
    "tuning.sklearn",
    "tuning.trackers",
    "tuning.trainers",
)


def documented_modules():
    """Yields the modules whose public names are documented; `dre_jax` itself passes on names of others."""
    yield dre_jax
    inside = [module.name for module in pkgutil.iter_modules(dre_jax.__path__) if module.ispkg]
    for name in sorted([*inside, *MORE]):
        module = importlib.import_module(f"dre_jax.{name}")
        if hasattr(module, "__all__"):
            yield module


def documented_name(thing, name):
    """Returns the full name under which a name of `dre_jax` is documented: that in the module where it is public."""
    (module,) = {
        module.__name__
        for module in documented_modules()
        if module is not dre_jax and name in module.__all__ and getattr(module, name) is thing
    }
    return f"{module}.{name}"


def first_line(thing):
    """Returns the summary of a docstring, without what follows it in its paragraph."""
    paragraph = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return " ".join(paragraph.splitlines()).split(": ")[0].rstrip(".")


def summary(module):
    """Yields the lines of a table of a module's classes and functions."""
    yield from ("", ".. list-table::", "   :widths: auto", "")
    for name in module.__all__:
        thing = getattr(module, name)
        if callable(thing) and str(getattr(thing, "__module__", "")).startswith("dre_jax"):  # no alias of a type
            target = documented_name(thing, name) if module is dre_jax else f"{module.__name__}.{name}"
            yield f"   * - :py:obj:`~{target}`"
            yield f"     - {first_line(thing)}"
    yield ""


def page(module):
    """Returns the page of a module, in reStructuredText as docstrings are."""
    name = module.__name__
    # `Optimizer` has a part of its methods from a base class that has no page.
    options = {"dre_jax": "   :no-members:\n", "dre_jax.tuning": "   :inherited-members: Mapping, tuple\n"}.get(
        name, ""
    )
    return f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n{options}"


def purpose(path):
    """Returns the purpose of a file: the first sentence of its docstring, or of the comment at its head."""
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
    else:
        text = path.read_text().split("\n\n")[0].split("\n#")[0].replace("// ", "")
    return " ".join(text.split("\n\n")[0].split()).rstrip(".")


def file_page():
    """Returns the page of all files, a table for each folder."""
    root = Path(dre_jax.__file__).parent
    files = sorted(
        (path.relative_to(root) for kind in ("py", "h", "cc") for path in root.rglob(f"*.{kind}")),
        key=lambda path: (path.parent.parts, path.name),
    )
    lines = ["Files", "=====", "", "What each file of ``dre_jax/`` says of itself.", ""]
    for folder, paths in groupby(files, key=lambda path: path.parent):
        title = f"{Path('dre_jax', folder)}/"
        lines += [title, "-" * len(title), "", ".. list-table::", "   :widths: auto", ""]
        for path in paths:
            lines += [f"   * - ``{path.name}``", f"     - {purpose(root / path)}"]
        lines.append("")
    return "\n".join(lines)


def write_pages(app):
    """Writes the pages that have changed, before Sphinx reads any, and takes away those of modules that are gone."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    texts = {folder / f"{module.__name__}.rst": page(module) for module in documented_modules()}
    for path in folder.glob("*.rst"):
        if path not in texts:
            path.unlink()
    for path, text in {**texts, Path(app.srcdir) / FILES: file_page()}.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def amend_docstring(app, what, name, obj, options, lines):
    """Adds the table to a module's, and keeps Napoleon from taking what precedes a colon in a field's for its type."""
    if what == "module":
        lines += summary(obj)
    if what in ("attribute", "data", "property"):
        lines[:0] = (".. field", "")  # a comment


def find_name(app, env, node, contents):
    """Resolves `Name` to the public name that is called so, where there is exactly one."""
    target = node.get("reftarget", "").removesuffix("()").lstrip("~.")
    if node.get("refdomain") != "py" or not target:
        return None
    matches = [name for name in env.domaindata["py"]["objects"] if name == target or name.endswith(f".{target}")]
    if len(matches) != 1:
        return None
    return env.get_domain("py").resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], matches[0], node, contents
    )


def setup(app):
    """Registers the steps."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", amend_docstring, priority=400)
    app.connect("missing-reference", find_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
