"""`{interface-table}`: which interface supports what, from `reference/interfaces.toml`."""

import tomllib
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

INTERFACES = ("Optimizer", "DRESampler", "DRESearchCV", "dre-jax tune")
FILE = Path(__file__).parent.parent / "reference" / "interfaces.toml"


def rows():
    """Yields the name of a feature and what each interface has: "yes", a remark, or nothing."""
    for feature, cells in tomllib.loads(FILE.read_text()).items():
        texts = (cells.get(interface, "") for interface in INTERFACES)
        yield feature, *("yes" if "::" in text else text.replace("`", "") for text in texts)


def row(cells):
    """Returns a row of a table."""
    entries = (nodes.entry("", nodes.paragraph(text=text)) for text in cells)
    return nodes.row("", *entries)


class InterfaceTable(Directive):
    """The table."""

    def run(self):
        """Makes it."""
        columns = (nodes.colspec(colwidth=1) for _ in range(len(INTERFACES) + 1))
        head = nodes.thead("", row(("", *INTERFACES)))
        body = nodes.tbody("", *map(row, rows()))
        return [nodes.table("", nodes.tgroup("", *columns, head, body, cols=len(INTERFACES) + 1))]


def setup(app):
    """Registers the directive."""
    app.add_directive("interface-table", InterfaceTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
