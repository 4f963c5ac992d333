"""Switches for every test: the CPU, no silent dtype or rank promotion, no window for figures."""

import os
from collections.abc import Iterator
from pathlib import Path

# In the environment too, so that the processes that tests start have the same switches.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side; see `dre_jax.cli.runtime.prepare`
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

import jax
import pytest

# A pytest plugin may have imported JAX before the environment was set.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

REPOSITORY = Path(__file__).resolve().parents[1]

# Many small programs, of which each runs once or twice: compiling them takes most of the time, and optimising them up
# to half of that. In the other folders, commands and results from end to end among them, programs are as users have
# them.
NOT_OPTIMISED = ("benchmark", "losses", "methods", "model", "native", "search", "surrogates", "training")


@pytest.fixture(scope="module", autouse=True)
def optimise(request: pytest.FixtureRequest) -> Iterator[None]:
    """Turns most of the compiler's optimisations off for some folders of tests."""
    tests, path = REPOSITORY / "tests", Path(request.path)
    off = path.is_relative_to(tests) and path.relative_to(tests).parts[0] in NOT_OPTIMISED
    jax.config.update("jax_disable_most_optimizations", off)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


MAPPINGS = 20_000  # of 65,530 that Linux allows a process: a compiled program takes some, and one too many is the end


@pytest.fixture(scope="module", autouse=True)
def let_go_of_programs() -> Iterator[None]:
    """Forgets compiled programs after a module of tests, once the process holds many."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAPPINGS:
        jax.clear_caches()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the large meta-datasets that lie beside the repository, on machines that have them."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no ../shared/data beside the repository: the large meta-datasets are not on this machine")
    return folder
