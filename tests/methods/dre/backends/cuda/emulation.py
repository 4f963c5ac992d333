"""The CUDA kernel on a CPU: its source under g++ (emulate.h), behind the handler and a driver that emulates a GPU."""

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path

from dre_jax.methods.dre.backends.cuda import library
from dre_jax.methods.dre.backends.cuda.compile import source
from dre_jax.runtime import cache as programs

HERE = Path(__file__).parent


def build(text: str, *flags: str) -> Path:
    """Returns the path of a library of C++, built unless it is cached."""
    headers = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.h")))
    digest = hashlib.sha256(" ".join(flags).encode() + text.encode() + headers).hexdigest()[:16]
    path = programs.folder() / f"emulated-{digest}.so"
    if not path.exists():
        part, code = path.with_suffix(f".{os.getpid()}.part"), path.with_suffix(f".{os.getpid()}.cc")
        code.write_text(text)
        command = ["g++", "-std=c++17", "-shared", "-fPIC", "-w", f"-I{HERE}", *flags, str(code), "-o", str(part)]
        subprocess.run(command, check=True, timeout=300)
        part.replace(path)
        code.unlink()
    return path


def emulated_cubin(plan, architecture, driver_major=None):
    """Takes the place of `compile.cubin`: the path of the plan's kernel, compiled for this CPU."""
    text = "\n".join(['#include "emulate.h"', source(plan, device=False), '#include "entry.h"'])
    return str(build(text, "-Og")).encode() + b"\0"


@cache
def emulated_limits():
    """Registers the call for CPUs with the driver that emulates an H100; returns what that has."""
    library.cubin = emulated_cubin
    driver = build((HERE / "emulated_driver.cc").read_text(), "-O1")
    return library.open_library(str(driver), "cpu")
