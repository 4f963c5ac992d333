"""``dre-jax methods``: the methods by name, and the settings of one."""

from typing import Annotated

import typer

from dre_jax.methods import Entry, find
from dre_jax.methods.entries.settings import leaves, to_text
from dre_jax.methods.foreign import arguments_by_name
from dre_jax.methods.registry import ALIASES, known_entries


def methods(
    name: Annotated[
        str | None, typer.Argument(help="List the settings of this method, for `dre-jax evaluate --set`.")
    ] = None,
) -> None:
    """List all methods, or the settings of one method with their values."""
    if name is not None:
        _print_settings(find(name))
        return
    rows = [("name", "transfer", "runs on", "needs", "what it is", "paper")]
    aliases = {method: f" ({alias})" for alias, method in ALIASES.items()}
    for entry in known_entries():
        needs = "core" if entry.extra is None else f"dre_jax[{entry.extra}]"
        transfer = "yes" if entry.transfer else "no"
        name = entry.name + aliases.get(entry.name, "")
        rows.append((name, transfer, entry.library, needs, entry.summary, entry.paper))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())


def _print_settings(entry: Entry) -> None:
    """Prints short options with the fields that they set, then every field with its value."""
    for short, paths in entry.options.items():
        print(f"--{short.replace('_', '-')} sets {', '.join(paths)}")
    defaults = dict(leaves(entry.default))
    if entry.host is not None:
        defaults = {name: argument.default for name, argument in arguments_by_name(entry.host).items()}
    for path, value in defaults.items():
        print(f"--set {path}={to_text(value)}")
    if not defaults:
        print(f"{entry.name} takes no settings")
