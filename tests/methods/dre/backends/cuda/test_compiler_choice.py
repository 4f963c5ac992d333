"""Which NVRTC compiles the kernel where several are installed."""

import subprocess

import pytest

from dre_jax import native
from dre_jax.methods.dre.backends.cuda import compile as kernel_compiler

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(native.compiler_version() is None, reason="no C++ compiler on this machine"),
]

LIBRARY = """
extern "C" int nvrtcVersion(int* major, int* minor) { return *major = %d, *minor = %d, 0; }
extern "C" int nvrtcGetNumSupportedArchs(int* n) { return *n = 2, 0; }
extern "C" int nvrtcGetSupportedArchs(int* all) { return all[0] = %d, all[1] = %d, 0; }
"""


@pytest.fixture
def two_compilers(tmp_path, monkeypatch):
    """NVRTC 12.8 for the architectures 80 and 90, and 13.2 for 90 and 120, as pip installs them; their folders."""
    for folder, version in (("cuda_nvrtc", (12, 8, 80, 90)), ("cu13", (13, 2, 90, 120))):
        path = tmp_path / "nvidia" / folder / "lib"
        path.mkdir(parents=True)
        source = path / "nvrtc.cc"
        source.write_text(LIBRARY % version)
        name = f"{path}/libnvrtc.so.{version[0]}"
        subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", name], check=True)
    monkeypatch.setattr(kernel_compiler.sys, "path", [str(tmp_path)])
    kernel_compiler.load_nvrtc.cache_clear()
    yield
    kernel_compiler.load_nvrtc.cache_clear()


@pytest.mark.parametrize(
    ("architecture", "driver", "folder"),
    [(90, 99, "cu13"), (90, 13, "cu13"), (120, 99, "cu13"), (80, 99, "cuda_nvrtc"), (90, 12, "cuda_nvrtc")],
)
def test_the_newest_that_knows_the_architecture_and_is_not_newer_than_the_driver(
    two_compilers, architecture, driver, folder
):
    assert f"/{folder}/" in kernel_compiler.load_nvrtc(architecture, driver)._name


def test_the_error_names_what_is_installed(two_compilers):
    with pytest.raises(OSError, match=r"architecture 77.* 12\.8, 13\."):
        kernel_compiler.load_nvrtc(77)
    with pytest.raises(OSError, match=r"architecture 120 .*CUDA 12"):
        kernel_compiler.load_nvrtc(120, 12)
