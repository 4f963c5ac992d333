"""The examples run as they stand, say what their pages promise, and leave a picture."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = {
    "optuna_workers": ("--journal", "study.log"),
    "past_studies": ("--surrogate", "surrogate"),
    "live_model": ("--study", "study.json"),
}
"""Options for a file that an example keeps."""


def run(name, out, *options):
    """What it prints; its picture is there."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": os.environ.get("DRE_JAX_CACHE", "")}
    option, file = FILES.get(name, ("--out", ""))
    command = [sys.executable, EXAMPLES / f"{name}.py", "--out", out, option, out / file, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stderr
    picture = Path(done.stdout.splitlines()[-1].removeprefix("picture: "))
    assert picture in (out / f"{name}.png", out / name / "regret.png")
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert min(struct.unpack(">II", head[16:])) > 500  # width and height
    return done.stdout


def regrets(said, at):
    """Mean regrets after so many trials, in the order of the lines."""
    return [float(value) for value in re.findall(rf"([\d.]+)(?: ± [\d.]+)? after {at}\b", said)]


def optuna_workers(said, out):
    assert said.startswith("32 trials of 4 workers, 32 different configurations")
    assert float(re.search(r"accuracy ([\d.]+)", said)[1]) > 0.95


def past_studies(said, out):
    assert said.startswith("20 past studies\npast study ")
    assert "weight of the past: " in said
    first, without = (float(x) for x in re.findall(r"\[([\d.]+)", said))
    assert first > without
    assert (out / "surrogate").is_dir()


def own_class(said, out):
    class_, chance = regrets(said, 50)
    assert class_ < chance


def new_method(said, out):
    new, random_search, process = regrets(said, 25)
    assert new < process < random_search


def many_runs(said, out):
    assert said.count(": 200 runs of 10 trials in ") == 3
    assert regrets(said, 10) == sorted(regrets(said, 10))
    assert (out / "many_runs" / "report.html").is_file()


def many_searches(said, out):
    process, chance = (float(one) for one in re.findall(r": ([\d.]+) after 25 trials of 100 searches", said))
    assert process < chance


def beliefs(said, out):
    distances = [float(one) for one in re.findall(r"mean distance from the truth ([\d.]+)", said)]
    assert len(distances) == 2
    assert max(distances) < 0.1  # of error rates from 0.13 to 0.46


def live_model(said, out):
    assert said.startswith("12 trials")
    assert float(re.search(r"log loss ([\d.]+)", said)[1]) < 0.12


def costs(said, out):
    (trials, half, end), (others, *_) = re.findall(
        r"(\d+) trials, best error ([\d.]+) at .*, ([\d.]+) at the end", said
    )
    assert int(trials) > int(others)  # cheaper ones
    assert float(end) <= float(half)


def objectives(said, out):
    optimizer, random_search = (float(volume) for volume in re.findall(r"hypervolume ([\d.]+)", said))
    assert optimizer > random_search


def learning_curves(said, out):
    stopped = int(re.search(r"30 trials, of which (\d+) were stopped", said)[1])
    epochs = int(re.search(r"(\d+) of 900 epochs", said)[1])
    assert stopped >= 10
    assert epochs < 750


def pausing(said, out):
    spent, full = (int(one) for one in re.search(r"(\d+) epochs; without pauses (\d+)", said).groups())
    assert spent < full / 2
    assert "killed in trial 30, the study has 60 trials" in said
    assert said.count("the same weights: True") == 1


def scaling(said, out):
    assert re.search(r"^alpha falls by 0\.[4-7]\d* decades", said, re.MULTILINE)
    first, without = (float(loss) for loss in re.findall(r"losses ([\d.]+),", said))
    assert first < without / 2


CHECKS = (
    *(beliefs, costs, learning_curves, live_model, many_runs, many_searches),
    *(new_method, objectives, optuna_workers, own_class, past_studies, pausing, scaling),
)
PROMISES = {check.__name__: check for check in CHECKS}
"""Checks of what an example says, by its name."""


def test_all_examples_are_tested():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {"gallery", "syne_tune", *PROMISES}
    assert set(re.findall(r"\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text())) == names
    for name in PROMISES:  # the site shows it: `scripts/gallery NAME`
        assert (EXAMPLES.parent / "docs" / "gallery" / f"{name}.png").is_file(), name


@pytest.mark.thorough
@pytest.mark.multiprocess
@pytest.mark.parametrize("name", PROMISES)
def test_examples_keep_the_promises_of_the_page(name, tmp_path):
    PROMISES[name](run(name, tmp_path), tmp_path)


@pytest.mark.multiprocess
@pytest.mark.slow
def test_a_quick_example(tmp_path):
    own_class(run("own_class", tmp_path, "--quick"), tmp_path)
