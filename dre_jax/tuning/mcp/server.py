"""The server of the Model Context Protocol, over standard input and output: the one file that imports `mcp`."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError

from dre_jax.errors import DataWarning, DreError
from dre_jax.tuning.mcp.study_folder import StudyFolder
from dre_jax.tuning.mcp.study_tools import StudyTools
from dre_jax.version import __version__

_INSTRUCTIONS = """Tunes hyperparameters. Create a study with its search space, then repeat: ask for a configuration, \
evaluate it yourself, tell the value. Studies are files, so they continue after a restart. list_studies shows what \
there is. explain says why a configuration was suggested."""


class StudyServer(MCPServer):
    """A server whose errors are one line, and which refuses arguments that a tool does not have."""

    def __init__(self, tools: StudyTools) -> None:
        """Creates a server of some tools."""
        super().__init__("dre-jax", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")
        self._tools = tools
        self._turn = threading.Lock()  # warnings are recorded by process
        functions: tuple[Callable[..., Any], ...] = (
            tools.create_study,
            tools.ask,
            tools.tell,
            tools.explain,
            tools.list_studies,
            tools.list_trials,
            tools.importance,
            self.plot,
        )
        self._arguments = {function.__name__: inspect.signature(function).parameters for function in functions}
        for function in functions:
            self.add_tool(self._one_at_a_time(function), description=inspect.getdoc(function))

    def plot(self, study: str, figure: str | None = None) -> list[str | Image]:
        """Draw a figure of a study, as an image.

        study: name of the study.
        figure: "History" (the default), "Front" of several objectives, "Slices", "Contours" or "Importance". A study of
          several objectives has "History of error" and so on. An error lists the figures that a study has.
        """
        heading, content = self._tools.figure(study, figure)
        return [heading, Image(data=content, format="png")]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Calls a tool. Raises `ToolError` with one line."""
        known = self._arguments.get(name, arguments)
        if unknown := [argument for argument in arguments if argument not in known]:
            raise ToolError(f"{name} has the arguments {', '.join(known)}, but got {unknown[0]!r}")
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:  # a fault of this library: the server logs it on standard error
            raise
        except ToolError as error:
            raise ToolError(_in_one_line(error)) from error.__cause__

    def _one_at_a_time(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a tool whose warnings are a part of its answer, and whose errors reach the client."""

        @functools.wraps(function)
        def call(**arguments: Any) -> Any:
            with self._turn, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DataWarning)
                try:
                    answer = function(**arguments)
                except DreError as error:
                    raise ToolError(str(error)) from error
            messages = [str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)]
            return answer | {"warnings": messages} if messages and isinstance(answer, dict) else answer

        return call


def serve(folder: Path) -> None:
    """Serves the studies of a folder until standard input ends.

    While it serves, what the process prints on standard output goes to standard error. Raises `DataError` if the folder
    cannot be made.
    """
    StudyServer(StudyTools(StudyFolder(folder))).run("stdio")


def _in_one_line(error: ToolError) -> str:
    """Returns the message of an error; that of arguments that do not fit names each of them."""
    cause: Any = error.__cause__
    if isinstance(cause, ValueError) and hasattr(cause, "errors"):
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in cause.errors())
        return f"{str(error).partition(':')[0]}: {'; '.join(faults)}"
    return " ".join(str(error).split())
