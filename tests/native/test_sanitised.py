"""The other tests of this folder once more, with the C++ built to stop at bad addresses and undefined behaviour."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dre_jax import native
from dre_jax.native import build

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.slow,
    pytest.mark.multiprocess,
    pytest.mark.skipif(not native.available(), reason="no C++ compiler on this machine"),
]

SANITISE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
PROGRAM = f"""
import sys, pytest
from dre_jax import native
from dre_jax.native import build
build.LOOPS += {SANITISE}
assert native.available()
sys.exit(pytest.main(sys.argv[1:]))
"""
TESTS = ("test_losses.py", "test_draw.py", "test_steps.py::test_capacity_changes_nothing")


def library(name):
    """Path of one of the compiler's run-time libraries; None where it has none."""
    path = Path(build._run(build._compiler(), f"-print-file-name={name}").strip())
    return path.resolve() if path.is_absolute() else None


def test_sanitisers_report_nothing(tmp_path):
    # The sanitiser must be loaded before all others, and looks for what throws exceptions at once.
    runtime = [library(name) for name in ("libasan.so", "libstdc++.so.6")]
    if None in runtime:
        pytest.skip(f"{build._compiler()} comes without libasan.so or libstdc++.so.6")
    environment = os.environ | {
        "LD_PRELOAD": " ".join(map(str, runtime)),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python never frees all that it has
        "DRE_JAX_CACHE": str(tmp_path),
    }
    tests = [str(Path(__file__).with_name(name)) for name in TESTS]
    command = [sys.executable, "-c", PROGRAM, "-q", "-p", "no:cacheprovider", *tests]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[:4000]
    assert " passed" in process.stdout
    assert "skipped" not in process.stdout
