"""Directives of the reference pages.

`{command-help}` is what every command of `dre-jax` says of itself, a section a command. `{interface-table}` says which
interface supports what, from `reference/interfaces.toml`.
"""

import os
import tomllib
from pathlib import Path

import typer
from docutils import nodes
from docutils.parsers.rst import Directive

WIDTH = 96
INTERFACES = ("Optimizer", "DRESampler", "DRESearchCV", "dre-jax tune")
FILE = Path(__file__).parent.parent / "reference" / "interfaces.toml"


def helps():
    """Yields the name of each command and its help."""
    from dre_jax.cli import app

    os.environ["COLUMNS"] = str(WIDTH)
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        context = command.make_context(f"dre-jax {name}", [], resilient_parsing=True)
        context.max_content_width = context.terminal_width = WIDTH
        yield name, command.get_help(context)


class CommandHelp(Directive):
    """The sections."""

    def run(self):
        """Makes them."""
        sections = []
        for name, text in helps():
            section = nodes.section(ids=[f"dre-jax-{name}"], names=[f"dre-jax {name}"])
            section += nodes.title("", f"dre-jax {name}")
            section += nodes.literal_block("", text, language="text")
            sections.append(section)
        return sections


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
    """Registers the directives."""
    app.add_directive("command-help", CommandHelp)
    app.add_directive("interface-table", InterfaceTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
