"""Commands from dataclasses, whose fields are the options, and options that several commands share."""

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from inspect import Parameter, Signature, get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, get_type_hints

import typer

from dre_jax.data.features import number_of
from dre_jax.errors import ConfigError
from dre_jax.runtime.setup import prepare

if TYPE_CHECKING:
    from dre_jax.tuning import Fidelity

Data = Annotated[Path, typer.Option(help="Folder of meta-datasets in HPO-B's v3 layout.")]
Spaces = Annotated[list[str] | None, typer.Option("--space", help="Search space; may be repeated. Default: all.")]
_FIELDS = "Any field of the method's configuration; `dre-jax methods NAME` lists them. May be repeated."
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help=_FIELDS)]
Seed = Annotated[int, typer.Option(help="The same seed gives the same results.", min=0, max=2**32 - 1)]
Columns = Annotated[
    str, typer.Option(help="HPO-B's columns: published, or fixed, with logarithms that HPO-B left out.")
]
SpaceFile = Annotated[Path, typer.Option("--space", metavar="FILE", help="Search space, JSON.")]
Surrogate = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="DIR", help="Checkpoint folder of `meta-train`. Default: none.")
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=VALUE,...",
        help="Features of the task for a surrogate whose past tasks have some: parameters=7e9,tokens=1.4e11.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print results and errors only, no progress.")]
Devices = Annotated[int | None, typer.Option(min=1, help="Devices per process. Default: all; on a CPU, one per core.")]
Distributed = Annotated[
    bool, typer.Option("--distributed", help="Join the other processes of the cluster: Slurm, Open MPI, Cloud TPU.")
]
Coordinator = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Join processes by hand: address of the first one.")
]
Processes = Annotated[int | None, typer.Option(min=1, help="Number of processes, with --coordinator.")]
ProcessId = Annotated[int | None, typer.Option(min=0, help="Index of this process, from 0, with --coordinator.")]


def parse_features(text: str | None) -> dict[str, float | str | None] | None:
    """Returns the features of a task in the text of an option; a value without text is unknown.

    Raises `ConfigError` for anything but pairs of different names and values.

    Example:
      >>> parse_features("parameters=7e9, gpu=a100, tokens=")
      {'parameters': 7000000000.0, 'gpu': 'a100', 'tokens': None}
    """
    if text is None:
        return None
    features: dict[str, float | str | None] = {}
    for name, equals, value in (part.strip().partition("=") for part in text.split(",")):
        name, value = name.strip(), value.strip()
        if not name or not equals or name in features:
            raise ConfigError(f"--features must be NAME=VALUE pairs separated by commas, but got {text!r}")
        number = number_of(value)
        features[name] = (value or None) if number is None else number
    return features


def parse_fidelity(text: str | None) -> "Fidelity | None":
    """Returns the fidelity in the text of an option: its lowest and its highest budget, or all rungs if there are more.

    Raises `ConfigError` for anything else, and as `Fidelity`.

    Example:
      >>> parse_fidelity("epochs=1:50").budgets
      (1, 2, 3, 6, 12, 25, 50)
      >>> parse_fidelity("share=0.1:0.5:1").budgets
      (0.1, 0.5, 1.0)
    """
    from dre_jax.tuning import Fidelity

    if text is None:
        return None
    name, _, bounds = text.partition("=")
    numbers = [number_of(bound) for bound in bounds.split(":")]
    budgets = [number for number in numbers if number is not None]
    if len(budgets) < len(numbers) or len(numbers) < 2:
        raise ConfigError(f"--fidelity must be NAME=LOWEST:HIGHEST, such as epochs=1:50, but got {text!r}")
    budgets = [int(number) if number.is_integer() and "." not in bounds else number for number in budgets]
    return Fidelity(name.strip(), budgets[0], budgets[-1], rungs=budgets if len(budgets) > 2 else None)


class Command(Protocol):
    """A frozen dataclass whose fields are the options of a command, and whose docstring is its help."""

    def run(self) -> None:
        """Does what the command does."""
        ...


def command(kind: type[Command]) -> Callable[..., None]:
    """Returns the function from which Typer makes a command: its own fields are the first options, then inherited ones.

    Example:
      >>> @dataclass(frozen=True, kw_only=True)
      ... class SayHello:
      ...     name: Annotated[str, typer.Option(help="Who is greeted.")] = "you"
      ...
      ...     def run(self):
      ...         print(f"hello, {self.name}")
      >>> command(SayHello).__name__
      'say_hello'
      >>> command(SayHello)(name="world")
      hello, world
    """
    hints, class_annotations = get_type_hints(kind, include_extras=True), get_annotations(kind)
    options = sorted(fields(kind), key=lambda field: field.name not in class_annotations)  # type: ignore[arg-type]
    defaults = {field.name: Parameter.empty if field.default is MISSING else field.default for field in options}

    def run(**values: Any) -> None:
        kind(**values).run()

    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in defaults.items()
    ]
    run.__name__ = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    run.__doc__, run.__annotations__ = kind.__doc__, {name: hints[name] for name in defaults}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True, kw_only=True)
class OnDevices:
    """Options of a command that computes on all devices, of several processes too."""

    devices: Devices = None
    distributed: Distributed = False
    coordinator: Coordinator = None
    processes: Processes = None
    process_id: ProcessId = None
    quiet: Quiet = False

    def prepare(self) -> None:
        """Sets this process up."""
        prepare(self.devices, self.distributed, self.coordinator, self.processes, self.process_id)
