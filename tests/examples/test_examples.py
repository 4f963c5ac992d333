"""The examples run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name, *arguments):
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": os.environ.get("DRE_JAX_CACHE", "")}
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stderr
    return done.stdout


def test_all_examples_are_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"live_model.py", "optuna_workers.py", "past_studies.py"}


@pytest.mark.slow
@pytest.mark.multiprocess
def test_a_live_model(tmp_path):
    found = run("live_model.py", "--study", tmp_path / "study.json")
    assert found.startswith("12 trials")
    assert float(re.search(r"log loss ([\d.]+)", found)[1]) < 0.12


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_workers_on_one_journal(tmp_path):
    found = run("optuna_workers.py", "--journal", tmp_path / "study.log")
    assert found.startswith("24 trials of 4 workers, 24 different configurations")
    assert float(re.search(r"accuracy ([\d.]+)", found)[1]) > 0.95


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_past_studies_make_a_surrogate(tmp_path):
    found = run("past_studies.py", "--surrogate", tmp_path / "surrogate")
    assert found.startswith("6 past studies\nwith the past")
    first, chance = (float(x) for x in re.findall(r"\[([\d.]+)", found))
    assert first > chance
    assert (tmp_path / "surrogate").is_dir()
