"""OptunaHub's rules for a package, and its example."""

import importlib.util
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "integrations" / "optunahub" / "package" / "samplers" / "dre"


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
