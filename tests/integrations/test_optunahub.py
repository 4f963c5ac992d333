"""OptunaHub's rules for a package, and its example."""

import importlib.util
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
import yaml

PACKAGE = Path(__file__).resolve().parents[2] / "integrations" / "optunahub" / "package" / "samplers" / "dre"


def test_the_front_matter_is_whole():
    _, front, body = (PACKAGE / "README.md").read_text().split("---\n", 2)
    inputs = yaml.safe_load(front)
    assert set(inputs) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert "sampler" in inputs["tags"]
    assert optuna.__version__ in inputs["optuna_versions"]
    assert inputs["license"] == "MIT License"
    assert (PACKAGE / "LICENSE").read_text().startswith("MIT License\n\nCopyright (c) 2026 The dre_jax authors\n")
    sections = re.findall(r"^## (\w+)$", body, re.MULTILINE)
    assert sections == ["Abstract", "APIs", "Installation", "Example", "Others"]
    assert "<" not in body  # HTML is not allowed


@pytest.mark.slow
@pytest.mark.thorough
def test_the_example_runs(monkeypatch, capsys, quiet_optuna):
    spec, calls = importlib.util.spec_from_file_location("optunahub_samplers_dre", PACKAGE / "__init__.py"), []
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def load_module(package):
        calls.append(package)
        return module

    monkeypatch.setitem(sys.modules, "optunahub", SimpleNamespace(load_module=load_module))
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    assert calls == ["samplers/dre"]
    assert float(capsys.readouterr().out.split()[-1]) < 0.6
