"""`{command-help}`: what every command of `dre-jax` says of itself, a section a command."""

import os

import typer
from docutils import nodes
from docutils.parsers.rst import Directive

WIDTH = 96


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


def setup(app):
    """Registers the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
