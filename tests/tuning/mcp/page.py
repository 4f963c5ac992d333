"""The transcript of the page on agents: its calls, and a session with a server as clients start it."""

import json
import os
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "agents.md"


class Session:
    """A server of a folder in a process of its own, and its client."""

    def __init__(self, folder):
        self._folder, self._stack = folder, AsyncExitStack()

    async def __aenter__(self):
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client

        arguments = ["-m", "dre_jax", "mcp", "--folder", str(self._folder)]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        self._client = await self._stack.enter_async_context(Client(stdio_client(server)))
        return self

    async def __aexit__(self, *error):
        await self._stack.aclose()

    async def call(self, name, arguments):
        """Returns the answer of a tool as JSON; the text of an error or of an image."""
        result = await self._client.call_tool(name, arguments)
        return result.content[0].text if result.structured_content is None else result.structured_content


def calls_of_page():
    """Returns the tools, arguments and answers of the transcript."""
    (transcript,) = re.findall(r"```text\n(> .*?)```", PAGE.read_text(), re.DOTALL)
    calls = []
    for call in transcript.removeprefix("> ").split("\n> "):
        line, _, answer = call.partition("\n")
        name, _, arguments = line.partition(" ")
        answer = " ".join(answer.split())
        calls.append((name, json.loads(arguments or "{}"), json.loads(answer) if answer.startswith("{") else answer))
    return calls


def is_close(answer, expected):
    """Returns whether an answer has the content of another one, with numbers that are rounded to two digits."""
    if isinstance(expected, dict):
        return answer.keys() == expected.keys() and all(is_close(answer[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(answer) == len(expected) and all(map(is_close, answer, expected))
    if isinstance(expected, float):
        return answer == pytest.approx(expected, rel=0.05)
    return answer == expected
