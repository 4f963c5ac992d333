"""`dre-jax demo`: that it trains, evaluates and reports; tests/packaging runs `--quick` as it is."""

from dataclasses import replace
from importlib import import_module

import pytest

from dre_jax.data import bundled, read_results

demo = import_module("dre_jax.cli.demo")  # the package's name `demo` is the command


@pytest.mark.usefixtures("numbers_only")
@pytest.mark.slow
def test_the_quick_one(cli, tmp_path, monkeypatch):
    methods = {"dre-no-finetune": {}, "random": {}}
    monkeypatch.setattr(demo, "META_TRAINED", ("dre",))  # priors take twenty seconds
    monkeypatch.setattr(demo, "QUICK", replace(demo.QUICK, steps=2, trials=1, at=(1,), methods=methods))
    monkeypatch.setenv("XLA_FLAGS", "")  # restored afterwards; XLA has read them
    status, out, error = cli("demo", "--quick", "--out", tmp_path, "--quiet")
    assert (status, error) == (0, "")
    assert out.startswith("svm: 2 steps, training loss ")
    assert out.rstrip().endswith(f"results, figures and report.html in {tmp_path}")
    tasks = set(bundled.load("svm").test)
    for name in methods:
        result = read_results(tmp_path / f"{name}.json")
        runs = list(result.runs())
        assert {run[:3] for run in runs} == {("svm", task, "test0") for task in tasks}
        assert {len(run[3]) for run in runs} == {2}
        assert bool(result.meta["checkpoints"]) == (name == "dre-no-finetune")
