"""Installation from nothing: new environments, an empty cache of pip's, a copy of the repository."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from dre_jax import native

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASE = "9.8.7"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The repository's files, as a clone of a release has them, without an environment."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("the repository's files cannot be listed: no git here, or no clone")
    folder = tmp_path_factory.mktemp("clone") / "dre jax"  # a blank, as folders of users have
    for name in listed.stdout.decode().split("\0"):
        if name and (REPOSITORY / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    person = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for command in (["init"], ["add", "."], [*person, "commit", "-m", "Release"], ["tag", f"v{RELEASE}"]):
        run("git", *command, cwd=folder)
    return folder


def run(*command, cwd, **environment):
    selected = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    process = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=selected | environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_the_scripts_install_everything(copy, tmp_path):
    run("bash", "-c", "source scripts/_env; prepare dev", cwd=copy, CI="true", PYTHON=sys.executable)
    python = copy / ".venv" / "bin" / "python"
    run(python, "-m", "pip", "check", cwd=tmp_path)
    result = run(python, "-c", "import dre_jax, optuna, smac, xgboost; print(dre_jax.__file__)", cwd=tmp_path)
    assert Path(result.strip()) == copy / "dre_jax" / "__init__.py"
    assert run(python, "-m", "pytest", "-q", "tests/search/test_ranks.py", cwd=copy).rstrip().endswith("s")


@pytest.fixture(scope="module")
def built(copy, tmp_path_factory):
    """The source distribution, and the wheel that is built from it and nothing else."""
    folder = tmp_path_factory.mktemp("built")
    python = new_environment(folder, "build", "twine")
    run(python, "-m", "build", "--outdir", folder / "dist", copy, cwd=folder, PIP_CACHE_DIR=str(folder / "cache"))
    run(python, "-m", "twine", "check", "--strict", *(folder / "dist").iterdir(), cwd=folder)
    (sdist,), (wheel,) = (folder / "dist").glob("dre_jax-*.tar.gz"), (folder / "dist").glob("dre_jax-*.whl")
    return sdist, wheel


def new_environment(folder, *packages):
    """Its interpreter; an empty cache of pip's, since what was built once hides what is missing."""
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", *packages, cwd=folder, PIP_CACHE_DIR=str(folder / "cache"))
    return python


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_a_wheel_runs_outside_the_repository(copy, built, tmp_path):
    python = new_environment(tmp_path, "-c", copy / "constraints.txt", f"{built[1]}[sklearn]")
    fresh = {"DRE_JAX_CACHE": str(tmp_path / "programs")}
    run(python, "-m", "pip", "check", cwd=tmp_path)
    facts = json.loads(run(python.parent / "dre-jax", "version", "--json", cwd=tmp_path, **fresh))
    assert facts["dre_jax"] == RELEASE, "the tag's, by way of the sdist"
    assert facts["packages"]["optuna"] is None
    assert (facts["native"]["fingerprint"] is None) == (native.decision().fingerprint is None), "the C++ ships too"
    result = run(python, "-c", "import dre_jax; print(dre_jax.__file__)", cwd=tmp_path)
    assert Path(result.strip()).is_relative_to(tmp_path / "venv")
    output = run(python.parent / "dre-jax", "demo", "--quick", cwd=tmp_path, **fresh)
    assert output.rstrip().endswith("results, figures and report.html in demo-out")
    assert (tmp_path / "demo-out" / "report.html").stat().st_size > 10_000
    assert "make_pretrained.py" in run(python.parent / "dre-jax", "info", "svc.auc", cwd=tmp_path, **fresh)
    examples = re.findall(r"```python\n(.*?)```", (copy / "README.md").read_text(), re.DOTALL)
    (tmp_path / "readme.py").write_text("\n".join(examples))
    assert run(python, "readme.py", cwd=tmp_path, **fresh).startswith("best {'lr': ")


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_the_tests_run_from_the_sdist(built, tmp_path):
    """All are found, which imports all that they import; those run that read most of what lies beside the package."""
    with tarfile.open(built[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("dre_jax-*")
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    alone = {"PYTHONPATH": str(folder), "DRE_JAX_CACHE": str(tmp_path / "programs")}
    there = "import dre_jax, benchmarks; print(dre_jax.__file__, benchmarks.__file__)"
    assert run(sys.executable, "-c", there, cwd=folder, **alone).count(str(folder)) == 2
    result = run(*pytest_here, "--collect-only", cwd=folder, **alone)
    assert int(re.search(r"(\d+) tests collected", result)[1]) > 2000
    assert "benchmarks/suite" in result
    paths = ["tests/benchmarks/suite", "tests/packaging", "tests/test_imports.py", "tests/integrations"]
    assert " passed" in run(*pytest_here, "-m", "not thorough", *paths, cwd=folder, **alone).splitlines()[-1]
