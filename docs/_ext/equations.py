"""Equations as MathML, which browsers draw themselves: no script is fetched."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def inline(writer, node):
    """Adds an equation within a line to the page."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def display(writer, node):
    """Adds an equation of its own to the page."""
    equation = tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="math-wrapper">{equation}</div>')
    raise nodes.SkipNode


def setup(app):
    """Registers the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
