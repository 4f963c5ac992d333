"""The command line, ``dre-jax``: one file a command."""

import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import typer

from dre_jax.cli.bench import Bench
from dre_jax.cli.compare import Compare
from dre_jax.cli.demo import demo
from dre_jax.cli.download import download
from dre_jax.cli.evaluate import Evaluate
from dre_jax.cli.info import info
from dre_jax.cli.mcp import mcp
from dre_jax.cli.meta_train import MetaTrain
from dre_jax.cli.methods import methods
from dre_jax.cli.options import command
from dre_jax.cli.report import report
from dre_jax.cli.suggest import suggest
from dre_jax.cli.tune import Tune
from dre_jax.cli.version import root, version
from dre_jax.errors import DataWarning, DreError
from dre_jax.runtime import distributed

app = typer.Typer(
    name="dre-jax",
    help="Deep Ranking Ensembles: hyperparameter optimisation that learns to rank from past tasks.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.callback()(root)
meta_train, evaluate, compare, bench, tune = map(command, (MetaTrain, Evaluate, Compare, Bench, Tune))
for function in (
    demo,
    download,
    meta_train,
    evaluate,
    compare,
    bench,
    report,
    suggest,
    tune,
    mcp,
    methods,
    info,
    version,
):
    app.command()(function)


_INTERRUPT_MESSAGE = "interrupted; rerun the command to resume"


def _warn_in_one_line(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
    print(f"dre-jax: warning: {message}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; errors of the user's are one line on standard error and exit status 2."""
    arguments_list = list(sys.argv[1:] if arguments is None else arguments)
    warnings.simplefilter("always", DataWarning)
    warnings.showwarning = _warn_in_one_line
    try:
        status = app(args=arguments_list or ["--help"], prog_name="dre-jax", standalone_mode=False)
        if status != 130:
            distributed.wait()
    except DreError as error:
        _end(str(error), 2)
    except (typer.Abort, KeyboardInterrupt):
        _end(_INTERRUPT_MESSAGE, 130)
    except Exception as error:
        # Typer's errors of usage: their common class has moved between its versions, their method has not.
        if hasattr(error, "format_message"):
            _end(error.format_message(), 2)
        if jax.distributed.is_initialized():
            distributed.fail(error)
        raise
    else:
        if status == 130:  # newer versions of Typer catch the interrupt themselves
            _end(_INTERRUPT_MESSAGE, 130)
        raise SystemExit(status if isinstance(status, int) else 0)


def _end(message: str, status: int) -> NoReturn:
    print(f"dre-jax: {' '.join(message.split())}", file=sys.stderr)
    if jax.distributed.is_initialized():
        distributed.leave(status)
    raise SystemExit(status)
