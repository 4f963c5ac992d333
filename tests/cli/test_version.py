"""`dre-jax version`: what a report of a bug has to say of the machine."""

import json
import re
import tomllib
from pathlib import Path

import jax
import numpy as np
import optuna

import dre_jax
from dre_jax import native
from dre_jax.cli.version import CORE, OPTIONAL

REPOSITORY = Path(__file__).resolve().parents[2]


def describe(cli):
    """What the command prints: its lines by name, and its JSON."""
    status, out, error = cli("version")
    assert (status, error) == (0, "")
    lines = dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines())
    return lines, json.loads(cli("version", "--json")[1])


def test_versions_devices_and_the_compiler(cli, monkeypatch):
    monkeypatch.setenv("JAX_OF_THE_TEST", "5")
    lines, result = describe(cli)
    assert lines["dre_jax"] == result["dre_jax"] == dre_jax.__version__
    assert lines["jax"] == result["packages"]["jax"] == jax.__version__
    assert result["packages"]["numpy"] == np.__version__
    assert f"optuna {optuna.__version__}" in lines["extras"]
    assert result["devices"] == {"platform": "cpu", "kind": "cpu", "count": len(jax.devices())}
    assert lines["devices"] == f"{len(jax.devices())} cpu"
    assert lines["cache"] == result["cache"]
    assert result["native"] == native.decision()._asdict()
    assert lines["C++ steps"].startswith("on, " if native.available() else "off: ")
    assert result["variables"]["JAX_OF_THE_TEST"] == "5"
    assert "JAX_OF_THE_TEST=5" in lines["variables"].split()
    assert "PATH" not in result["variables"]


def test_disabled_and_failed_parts_have_reasons(cli, monkeypatch):
    monkeypatch.setattr(native, "decision", lambda: native.trial.Decision(None, "DRE_JAX_NATIVE=0"))
    monkeypatch.setattr(native, "compiler_version", lambda: None)
    monkeypatch.setenv("DRE_JAX_CACHE", "")
    lines, result = describe(cli)
    assert lines["C++ steps"] == "off: DRE_JAX_NATIVE=0"
    assert (lines["compiler"], lines["cache"]) == ("none found", "off")
    assert (result["compiler"], result["cache"]) == (None, None)

    def fail():
        raise RuntimeError("Unable to initialize backend 'cuda':\n no driver")

    monkeypatch.setattr(jax, "local_devices", fail)
    lines, result = describe(cli)
    assert lines["devices"] == "none: RuntimeError Unable to initialize backend 'cuda': no driver"
    assert result["native"] is None
    assert "C++ steps" not in lines


def test_every_dependency_is_named():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for_users = [extras[name] for name in extras if name not in ("test", "dev", "docs")]
    named = [*project["dependencies"], *(one for packages in for_users for one in packages)]
    packages = {re.split(r"[>=<\[;]", one)[0] for one in named} - {"dre_jax"}
    assert packages <= {*CORE, *OPTIONAL}


def test_the_option_and_none(cli):
    assert "meta-train" in cli()[1]
    assert cli("--version") == (0, f"dre-jax {dre_jax.__version__}\n", "")
