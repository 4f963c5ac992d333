"""Installation from nothing: new environments, an empty cache of pip's, a copy of the repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The repository's files, as a clone has them, without an environment."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("the repository's files cannot be listed: no git here, or no clone")
    folder = tmp_path_factory.mktemp("clone") / "dre jax"  # a blank, as folders of users have
    for name in listed.stdout.decode().split("\0"):
        if name and (REPOSITORY / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    return folder


def run(*command, cwd, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept | environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_the_scripts_install_everything(copy, tmp_path):
    run("bash", "-c", "source scripts/_env; prepare dev", cwd=copy, CI="true", PYTHON=sys.executable)
    python = copy / ".venv" / "bin" / "python"
    run(python, "-m", "pip", "check", cwd=tmp_path)
    found = run(python, "-c", "import dre_jax, optuna, smac, xgboost; print(dre_jax.__file__)", cwd=tmp_path)
    assert Path(found.strip()) == copy / "dre_jax" / "__init__.py"
    assert run(python, "-m", "pytest", "-q", "tests/model/test_ranks.py", cwd=copy).rstrip().endswith("s")


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_a_wheel_runs_outside_the_repository(copy, tmp_path):
    fresh = {"PIP_CACHE_DIR": str(tmp_path / "cache")}
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "dist", copy, cwd=tmp_path, **fresh)
    (wheel,) = (tmp_path / "dist").glob("dre_jax-*.whl")
    run(python, "-m", "pip", "install", "-q", "-c", copy / "constraints.txt", wheel, cwd=tmp_path, **fresh)
    told = run(python.parent / "dre-jax", "methods", cwd=tmp_path)
    assert "dre-gp" in told
    code = "from dre_jax.data import bundled; print(len(bundled.load('svm').train))"
    assert int(run(python, "-c", code, cwd=tmp_path)) > 0
