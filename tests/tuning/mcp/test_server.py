"""The server, asked by the client of the protocol's own package: in this process, and as clients start it."""

import asyncio
import base64
import io
import itertools
import json
import math
import subprocess
import sys
import warnings
from typing import Any

import matplotlib.image
import pytest

from dre_jax import Float, Optimizer, Space
from dre_jax.errors import DataWarning
from dre_jax.tuning.mcp.study_folder import StudyFolder
from dre_jax.tuning.mcp.study_tools import StudyTools
from tests.tuning.mcp.page import Session, calls_of_page, is_close

mcp = pytest.importorskip("mcp", reason="mcp is not installed: pip install 'dre_jax[mcp]'")
SPACE = {"x": {"type": "float", "low": 0.0, "high": 1.0}}
pytestmark = pytest.mark.usefixtures("even_points")


@pytest.fixture
def tools(tmp_path):
    return StudyTools(StudyFolder(tmp_path / "studies"))


@pytest.fixture
def ask_server(tools):
    """Calls tools one after the other: their results."""
    from dre_jax.tuning.mcp.server import StudyServer

    def ask(*calls):
        async def session():
            async with mcp.Client(StudyServer(tools)) as client:
                return [await client.call_tool(name, arguments) for name, arguments in calls]

        return asyncio.run(session())

    return ask


def errors_of(results):
    """The messages of results that are errors, each a single line."""
    assert all(result.is_error for result in results), results
    messages = [content.text for result in results for content in result.content]
    assert not [message for message in messages if len(message.splitlines()) != 1 or "Traceback" in message]
    return messages


def test_a_study_from_its_creation_to_its_figures(ask_server, tools):
    create = {"study": "a", "space": SPACE, "direction": "maximize", "seed": 4}
    created, asked, *told = ask_server(
        ("create_study", create),
        ("ask", {"study": "a", "n": 3}),
        ("tell", {"study": "a", "trial": 0, "value": 0.5, "stderr": 0.1, "cost": 2.0}),
        ("tell", {"study": "a", "trial": 1, "failed": True}),
        ("tell", {"study": "a", "trial": 2, "value": "inf"}),
    )
    twin = Optimizer(Space({"x": Float(0.0, 1.0)}), direction="maximize", seed=4)
    assert created.structured_content == {"study": "a", "objectives": {"value": "maximize"}, "past_studies": 0}
    assert [trial["params"] for trial in asked.structured_content["trials"]] == [one.params for one in twin.ask(3)]
    assert told[0].structured_content["told"]["stderr"] == 0.1
    assert told[-1].structured_content["best"][0]["value"] == "inf"
    listed, last, explained = ask_server(
        ("list_studies", {}), ("list_trials", {"study": "a", "last": 1}), ("explain", {"study": "a"})
    )
    (study,) = listed.structured_content["studies"]
    assert study["n_trials"] == {"complete": 2, "failed": 1}
    assert [trial["trial"] for trial in last.structured_content["trials"]] == [2]
    assert explained.structured_content["origin"] == "initial"
    assert Optimizer.load(tools._folder.path("a.json")).best.value == math.inf


def test_several_objectives(ask_server):
    directions = {"error": "minimize", "speed": "maximize"}
    tell = [{"study": "a", "trial": n, "values": {"error": n, "speed": n**2}} for n in range(3)]
    *_, told, shares, figure = ask_server(
        ("create_study", {"study": "a", "space": SPACE, "directions": directions}),
        ("ask", {"study": "a", "n": 3}),
        *(("tell", arguments) for arguments in tell),
        ("importance", {"study": "a", "objective": "speed"}),
        ("plot", {"study": "a"}),
    )
    assert [trial["trial"] for trial in told.structured_content["best"]] == [0, 1, 2]
    assert shares.structured_content == {"importance": {"x": 1.0}}
    heading, image = figure.content
    assert (heading.text, image.mime_type) == ("Front", "image/png")
    assert matplotlib.image.imread(io.BytesIO(base64.b64decode(image.data))).shape[2] == 4


def test_errors_are_one_line(ask_server):
    ask_server(("create_study", {"study": "a", "space": SPACE}), ("ask", {"study": "a"}))
    cases = {
        "got 'b'": ("ask", {"study": "b"}),
        "in the server's folder": ("ask", {"study": "../a"}),
        "n: Input should be a valid integer": ("ask", {"study": "a", "n": "many"}),
        "n must be a whole number from 1": ("ask", {"study": "a", "n": 0}),
        "study: Field required": ("ask", {}),
        "ask has the arguments study, n, but got 'm'": ("ask", {"study": "a", "m": 1}),
        "Unknown tool": ("forget", {}),
        "tell needs one of value, values and failed": ("tell", {"study": "a", "trial": 0, "value": 1, "failed": True}),
        "one of the 1 of this study": ("tell", {"study": "a", "trial": 7, "value": 1}),
        "must have a type": ("create_study", {"study": "c", "space": {"x": [0, 1]}}),
        "must not be taken": ("create_study", {"study": "a", "space": SPACE}),
        "of one objective": (
            "create_study",
            {"study": "c", "space": SPACE, "directions": {"a": "minimize", "b": "minimize"}, "past": ["a"]},
        ),
        "complete trials with different values": ("importance", {"study": "a"}),
        "the figures of 'a' are History, but got 'Slices'": ("plot", {"study": "a", "figure": "Slices"}),
    }
    messages = errors_of(ask_server(*cases.values()))
    for words, message in zip(cases, messages, strict=True):
        assert words in message


def test_faults_of_the_server_and_of_its_files(ask_server, tools, monkeypatch, caplog):
    tools._folder.path("broken.json").write_text('{"dre_jax_study": 1, "direction')

    def importance(self, study: str) -> dict[str, Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(StudyTools, "importance", importance)
    listed, crashed = ask_server(("list_studies", {}), ("importance", {"study": "broken"}))
    assert "not valid JSON" in listed.structured_content["studies"][0]["error"]
    assert errors_of([crashed]) == ["Error executing tool importance"]
    assert (
        caplog.records[-1].exc_info[0].__name__ == "UnexpectedToolError"
    )  # for the log of the client, on standard error


def test_warnings_reach_the_agent(ask_server, monkeypatch):
    def ask(self, study: str) -> dict[str, Any]:
        warnings.warn("the past studies mislead", DataWarning, stacklevel=1)
        return {}

    monkeypatch.setattr(StudyTools, "ask", ask)
    (answer,) = ask_server(("ask", {"study": "a"}))
    assert json.loads(answer.content[0].text) == {"warnings": ["the past studies mislead"]}


def test_agents_read_what_each_argument_means(tools):
    from dre_jax.tuning.mcp.server import StudyServer

    described = asyncio.run(StudyServer(tools).list_tools())
    assert len(described) == 8
    for tool in described:
        assert len(tool.description.splitlines()[0]) > 20
        for argument in tool.input_schema["properties"]:
            assert f"\n{argument}: " in tool.description, (tool.name, argument)


_PRINTING = """
import os, sys
from dre_jax.tuning.mcp.server import serve
from dre_jax.tuning.mcp.study_tools import StudyTools
def list_studies(self):
    print("to standard output")
    os.write(1, b"by a library in C")
    return {}
StudyTools.list_studies = list_studies
serve(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.multiprocess
def test_standard_output_has_the_protocol_alone(tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-c", _PRINTING, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    calls = (
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "list_studies", "arguments": {}}},
    )
    answers = []
    for call in calls:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **call}) + "\n")
        server.stdin.flush()
        if "id" in call:
            answers.append(json.loads(server.stdout.readline()))
    rest, error = server.communicate()
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[0]["result"]["serverInfo"]["name"] == "dre-jax"
    assert (rest, server.returncode) == ("", 0)
    assert "to standard output" in error
    assert "by a library in C" in error


@pytest.mark.slow
@pytest.mark.multiprocess
def test_the_page_shows_what_the_server_answers(tmp_path):
    space = {"C": Float(0.01, 100.0, log=True), "gamma": Float(1e-4, 1.0, log=True)}
    for name, shift in (("week1", -0.5), ("week2", 0.5)):
        study = Optimizer(space)
        for c, gamma in itertools.product((0.01, 0.1, 1.0, 10.0, 100.0), (1e-4, 1e-3, 1e-2, 0.1, 1.0)):
            loss = 0.02 * (math.log10(c) - 1.0 + shift) ** 2 + 0.03 * (math.log10(gamma) + 2.0 + shift) ** 2
            study.add({"C": c, "gamma": gamma}, 0.05 + loss)
        study.save(tmp_path / f"{name}.json")

    async def replay():
        async with Session(tmp_path) as server:
            return [(await server.call(name, arguments), expected) for name, arguments, expected in calls_of_page()]

    for answer, expected in asyncio.run(replay()):
        assert is_close(answer, expected), (answer, expected)


@pytest.mark.slow
@pytest.mark.multiprocess
def test_two_servers_share_a_study_that_outlives_them(tmp_path):
    async def ask_both():
        async with Session(tmp_path) as first, Session(tmp_path) as second:
            await first.call("create_study", {"study": "a", "space": SPACE})
            asked = [one.call("ask", {"study": "a"}) for one in (first, second) * 3]
            return [answer["trials"][0] for answer in await asyncio.gather(*asked)]

    async def tell_later(trials):
        async with Session(tmp_path) as server:
            for trial in trials:
                await server.call("tell", {"study": "a", "trial": trial["trial"], "value": trial["params"]["x"]})
            return await server.call("list_trials", {"study": "a"})

    trials = asyncio.run(ask_both())
    assert sorted(trial["trial"] for trial in trials) == list(range(6))
    assert len({trial["params"]["x"] for trial in trials}) == 6
    study = asyncio.run(tell_later(trials))
    assert study["n_trials"] == {"complete": 6}
    assert study["best"][0]["value"] == min(trial["params"]["x"] for trial in trials)
