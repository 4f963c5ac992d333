"""Commands with placeholders for hyperparameters: `--lr {lr}`."""

import itertools
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from dre_jax.errors import ConfigError
from dre_jax.space.scalars import Value
from dre_jax.space.space import Params, Space
from dre_jax.tuning.fidelity.fidelity import budget_text
from dre_jax.tuning.trials.trial import Trial

ALL = "params"
"""`{params}` is the whole configuration as a JSON object, unless a hyperparameter has that name."""
NUMBER = "trial"
"""`{trial}` is the trial's number, unless a hyperparameter has that name."""
WORKER = "worker"
"""`{worker}` is a number from 0 that no other running trial of the process has, unless it is a hyperparameter."""
BUDGET = "budget"
"""`{budget}` is the budget to train until, in a study with a fidelity."""
CHECKPOINT = "checkpoint"
"""`{checkpoint}` is the folder of the training's checkpoints, in a study with a fidelity."""
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")

Piece = tuple[bool, str]
"""Whether the text is a placeholder's name, and the text."""


class Template(NamedTuple):
    """A command whose arguments are split into text and placeholders.

    Example:
      >>> from dre_jax.tuning import Categorical, Float, Int
      >>> space = Space({"lr": Float(0.0, 1.0), "kernel": Categorical(["rbf", "poly"]),
      ...                "degree": Int(2, 5, when={"kernel": "poly"})})
      >>> command = parse(["train", "--lr={lr}", "-k", "{kernel}", "--degree", "{degree}", "out/{trial}"], space)
      >>> command.fill(Trial(0, {"lr": 0.1, "kernel": "poly", "degree": 3}))
      ['train', '--lr=0.1', '-k', 'poly', '--degree', '3', 'out/0']
      >>> command.fill(Trial(1, {"lr": 0.1, "kernel": "rbf"}))
      ['train', '--lr=0.1', '-k', 'rbf', 'out/1']
    """

    arguments: tuple[tuple[Piece, ...], ...]
    """The arguments in pieces; the first is the program."""
    space: Space

    @property
    def program(self) -> str | None:
        """The program that all trials start; None if it has a placeholder."""
        has_names = any(is_name for is_name, _ in self.arguments[0])
        return None if has_names else "".join(text for _, text in self.arguments[0])

    @property
    def has_checkpoint(self) -> bool:
        """Whether the command names the folder of the training's checkpoints."""
        return (True, CHECKPOINT) in itertools.chain(*self.arguments) and CHECKPOINT not in self.space

    def fill(self, trial: Trial, worker: int = 0) -> list[str]:
        """Returns the arguments of a trial's command.

        An argument that names an inactive hyperparameter is left out. The flag before it is left out too, unless the
        argument is a flag itself, such as `--lr={lr}`. A flag starts with `-` and names no hyperparameter.
        """
        params = trial.params
        trial_values = {ALL: json.dumps(params), NUMBER: str(trial.number), WORKER: str(worker)}
        trial_values |= {} if trial.budget is None else {BUDGET: budget_text(trial.budget)}
        trial_values |= {} if trial.checkpoint is None else {CHECKPOINT: str(trial.checkpoint.absolute())}
        texts = [self._fill_argument(pieces, params, trial_values) for pieces in self.arguments]
        return [text for i, text in enumerate(texts) if text is not None and not self._is_idle_flag(i, texts)]

    def _fill_argument(self, pieces: tuple[Piece, ...], params: Params, trial_values: Mapping[str, str]) -> str | None:
        """Returns an argument; None if it names an inactive hyperparameter."""
        if any(is_name and text in self.space and text not in params for is_name, text in pieces):
            return None
        values = {**trial_values, **{name: as_text(value) for name, value in params.items()}}
        return "".join(values[text] if is_name else text for is_name, text in pieces)

    def _is_idle_flag(self, i: int, texts: Sequence[str | None]) -> bool:
        """Returns whether an argument is a flag whose value is left out."""
        following = i + 1
        if following == len(texts) or texts[following] is not None or not _is_value(self.arguments[following]):
            return False
        has_names = any(is_name for is_name, _ in self.arguments[i])
        return not has_names and _is_flag(texts[i] or "")


def parse(arguments: Sequence[str], space: Space, *, has_fidelity: bool = False) -> Template:
    """Splits a command into text and placeholders; `{{` and `}}` are braces.

    With a fidelity, the command must name the budget, and may name the folder of the training's checkpoints.

    Raises:
      ConfigError: for an empty command, a name that is not a hyperparameter, a hyperparameter without a placeholder, a
        brace that stands alone, a program named by a hyperparameter that may be inactive, or text that no argument can
        hold.
    """
    if not arguments or not arguments[0]:
        raise ConfigError("a command must follow `--`, as in `-- python train.py --lr {lr}`, but there is none")
    placeholders = (ALL, NUMBER, WORKER, *((BUDGET, CHECKPOINT) if has_fidelity else ()))
    split_arguments = tuple(_split(argument, space, placeholders) for argument in arguments)
    names = {text for pieces in split_arguments for is_name, text in pieces if is_name}
    missing = [name for name in space if name not in names]
    if missing and not (ALL in names and ALL not in space):
        raise ConfigError(f"the command must name every hyperparameter, but {{{missing[0]}}} is missing")
    if has_fidelity:
        _check_budget(names, space)
    program = [text for is_name, text in split_arguments[0] if is_name and text in space]
    conditional = [name for name in program if space[name].when]
    if conditional:
        raise ConfigError(f"the program's name must not contain {conditional[0]!r}, which may be inactive")
    for name in names & set(space):
        for choice in getattr(space[name], "choices", ()):
            _check_text(as_text(choice))
    return Template(split_arguments, space)


def as_text(value: Value) -> str:
    """Returns a value as an argument: text unchanged, everything else as in JSON.

    Example:
      >>> as_text(1e-05), as_text("rbf"), as_text(True), as_text(None), as_text(("a", "b"))
      ('1e-05', 'rbf', 'true', 'null', '["a", "b"]')
    """
    return value if isinstance(value, str) else json.dumps(value)


def _check_budget(names: Collection[str], space: Space) -> None:
    reserved = [name for name in (BUDGET, CHECKPOINT) if name in space]
    if reserved:
        rule = f"no hyperparameter of a study with a fidelity may be called {reserved[0]!r}"
        raise ConfigError(f"{rule}, because {{{reserved[0]}}} stands for that of the trial")
    if BUDGET not in names:
        raise ConfigError(f"the command of a study with a fidelity must name {{{BUDGET}}}, but does not")


def _split(argument: str, space: Space, placeholders: Collection[str]) -> tuple[Piece, ...]:
    _check_text(argument)
    pieces: list[Piece] = []
    for match in _PIECE.finditer(argument):
        text, name = match[0], match[1]
        if text in ("{{", "}}"):
            pieces.append((False, text[0]))
        elif text in ("{", "}"):
            raise ConfigError(f"a brace must be doubled unless it encloses a name, but got {argument!r}")
        elif name is None:
            pieces.append((False, text))
        elif name in space or name in placeholders:
            pieces.append((True, name))
        elif name in (BUDGET, CHECKPOINT):
            raise ConfigError(f"{text} needs a study with a fidelity: pass --fidelity NAME=LOWEST:HIGHEST")
        else:
            names = ", ".join(f"{{{name}}}" for name in space)
            raise ConfigError(f"a placeholder must be one of {names}; other braces must be doubled; but got {text!r}")
    return tuple(pieces)


def _is_value(pieces: tuple[Piece, ...]) -> bool:
    """Returns whether an argument is a value, not a flag; `--lr={lr}` is a flag."""
    return not pieces or pieces[0][0] or not _is_flag(pieces[0][1])


def _check_text(text: str) -> None:
    try:
        text_bytes = os.fsencode(text)
    except UnicodeEncodeError:
        text_bytes = b"\0"
    if b"\0" in text_bytes:
        raise ConfigError(f"an argument of a command must be text without NUL, but got {text!r}")


def _is_flag(text: str) -> bool:
    if not text.startswith("-") or text in ("-", "--"):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
