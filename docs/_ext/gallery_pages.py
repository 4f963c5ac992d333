"""Writes a page for each script of `examples/`, and one that shows them all, before Sphinx reads any page.

A page is the script's docstring, its picture and its code. The pictures lie in docs/gallery, where scripts/gallery puts
them: to run all examples while the site is built would take minutes.
"""

import ast
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDER = (
    "past_studies",
    "optuna_workers",
    "live_model",
    "objectives",
    "learning_curves",
    "pausing",
    "costs",
    "beliefs",
    "scaling",
    "new_method",
    "own_class",
    "many_runs",
    "many_searches",
)
NOT_SHOWN = {"gallery", "syne_tune"}  # shared parts, and a script that needs a download and draws nothing

INDEX = """\
# Gallery

Scripts of `examples/` that run in under a minute on two cores, print what their pages say and leave the picture shown.
`scripts/gallery` runs them all.

::::{{grid}} 1 2 2 2
:gutter: 3

{cards}
::::

```{{toctree}}
:hidden:
{names}
```
"""
CARD = """\
:::{{grid-item-card}} {title}
:link: {name}
:link-type: doc
:img-bottom: {name}.png
:::
"""


def parts(name):
    """The title and the text of an example, from its docstring."""
    title, _, text = (ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text())) or "").partition("\n\n")
    return " ".join(title.split()).rstrip("."), text


def page(name):
    """The page of an example, in reStructuredText as docstrings are."""
    title, text = parts(name)
    picture = f".. image:: {name}.png\n   :alt: The picture that the script leaves\n   :class: on-white"
    code = f".. literalinclude:: ../../examples/{name}.py\n   :language: python\n   :start-at: from __future__"
    return f"{title}\n{'=' * len(title)}\n\n{text}\n\n{picture}\n\n``examples/{name}.py``\n\n{code}\n"


def write_pages(app):
    """Writes the pages that have changed."""
    there = {path.stem for path in EXAMPLES.glob("*.py")} - NOT_SHOWN
    if there != set(ORDER):
        raise ValueError(f"the gallery must name every example, but they differ in {sorted(there ^ set(ORDER))}")
    folder = Path(app.srcdir) / "gallery"
    cards = "\n".join(CARD.format(title=parts(name)[0], name=name) for name in ORDER)
    texts = {f"{name}.rst": page(name) for name in ORDER}
    texts["index.md"] = INDEX.format(cards=cards, names="\n".join(ORDER))
    for path in (path for path in folder.glob("*.rst") if path.name not in texts):
        path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app):
    """Registers the step."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
