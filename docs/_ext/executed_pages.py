"""Executes the Python blocks of the pages that `executed_pages` lists, and shows what they print.

The sources stay plain Markdown, which code hosts colour and the tests read: the blocks become code cells of a notebook
while Sphinx reads the page.
"""

HEADER = """\
---
file_format: mystnb
kernelspec:
  name: python3
---
"""


def as_notebook(app, page, source):
    """Turns the blocks of a page that is listed into code cells."""
    if page in app.config.executed_pages:
        source[0] = HEADER + source[0].replace("```python\n", "```{code-cell} python\n")


def setup(app):
    """Registers the setting and the step."""
    app.add_config_value("executed_pages", [], "env")
    app.connect("source-read", as_notebook)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
