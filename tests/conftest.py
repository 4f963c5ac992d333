"""Switches for every test: the CPU, no silent dtype or rank promotion, no window for figures."""

import contextlib
import gc
import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

# In the environment too, so that the processes that tests start have the same switches.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # who called what is in no program that tests read
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side; see `dre_jax.runtime.setup.prepare`
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

import jax
import numpy as np
import pytest

from tests.array_annotations import check_calls

check_calls()  # before the library is imported

from dre_jax.cli import main
from dre_jax.data import SearchSpace, Task
from dre_jax.data.tasks import sort_task
from dre_jax.hpob import jobs as grid
from dre_jax.losses import LOSSES
from dre_jax.methods.dre.backends import BACKENDS
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.state import TrainingRun
from dre_jax.methods.dre.steps import start
from dre_jax.methods.dre.training_checkpoint import ResumableTraining
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.methods.registry import METHODS
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.search import SearchTask
from dre_jax.search.acquisition import ACQUISITIONS
from dre_jax.tuning.engine import engine
from dre_jax.tuning.suggestion.suggest import suggest_point

# A pytest plugin may have imported JAX before the environment was set.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Keeps what is compiled from run to run, in pytest's cache; all processes share it, those that tests start too.

    Tests compile thousands of small programs, which is most of what they take. What a test counts, or compiles in a
    folder of its own, is not touched.
    """
    # How many examples Hypothesis makes up (tests/tuning/conftest.py).
    os.environ["DRE_JAX_TESTS"] = "short" if "not thorough" in config.getoption("markexpr") else "all"
    cache = getattr(config, "cache", None)
    if cache is None:
        return
    folder = str(cache.mkdir("programs"))
    os.environ["DRE_JAX_CACHE"] = folder
    # CI begins with an empty cache: there, to keep what takes no time to compile costs a sixteenth of the run.
    least = 0.5 if os.environ.get("CI") == "true" else 0.0
    for name, value in (("min_compile_time_secs", least), ("min_entry_size_bytes", -1)):
        os.environ[f"JAX_PERSISTENT_CACHE_{name.upper()}"] = str(value)
        jax.config.update(f"jax_persistent_cache_{name}", value)
    jax.config.update("jax_compilation_cache_dir", folder)


gc.set_threshold(50_000, 20, 20)  # importing and tracing make much and leave little: an eighth of the time went there


MODULES = itertools.count(1)
MAPPINGS = Path("/proc/self/maps")


@pytest.fixture(scope="module", autouse=True)
def let_go_of_programs() -> Iterator[None]:
    """Forgets compiled programs when they take 12,000 mappings, of the 65,530 that Linux allows, and some 3 GB.

    Seldom, as tests share programs, and to forget them takes seconds.
    """
    yield
    if next(MODULES) % 10 == 0 and MAPPINGS.exists() and MAPPINGS.read_bytes().count(b"\n") > 12_000:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the large meta-datasets that lie beside the repository, on machines that have them."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no ../shared/data beside the repository: the large meta-datasets are not on this machine")
    return folder


def _copy_if_there(source, target):
    """Threads in C++ go on meanwhile, and take locks away."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


@pytest.fixture
def left_by_kills(tmp_path):
    """Copies of a folder at every call that touches a file in it: what a process leaves that is killed there."""

    def copies_of(folder, write):
        copies, watching = [], [True]

        def watch(event, arguments):
            touching = event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")
            if watching and touching and str(folder) in str(arguments[0]):
                watching.clear()  # what the copy does is not looked at
                target = tmp_path / f"killed at {len(copies)}"
                copies.append(shutil.copytree(folder, target, copy_function=_copy_if_there, dirs_exist_ok=True))
                watching.append(True)

        sys.addaudithook(watch)  # for good: there is no way to take it away
        try:
            write()
        finally:
            watching.clear()
        return copies

    return copies_of


@pytest.fixture
def registries():
    """Leaves the tables of methods, losses, acquisition functions and backends as they were."""
    tables = (METHODS, LOSSES, ACQUISITIONS)
    before, backends = [dict(table) for table in tables], list(BACKENDS)
    yield
    BACKENDS[:] = backends
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution with a module and entry points, `install(name, source, group, {point: object})`."""
    modules = []

    def installs(name, source, group, points):
        folder, lines = tmp_path / "site-packages", [f"{point} = {name}:{value}" for point, value in points.items()]
        information = folder / f"{name}-1.0.dist-info"
        information.mkdir(parents=True)
        (folder / f"{name}.py").write_text(source)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]))
        monkeypatch.syspath_prepend(folder)
        modules.append(name)

    yield installs
    for name in modules:
        sys.modules.pop(name, None)


@pytest.fixture
def quiet_optuna():
    """No line a trial."""
    with optuna_logs_at("ERROR"):
        yield


def space_filling_suggestion(config, *args, **options):
    return suggest_point(replace(config, reports=False), *args, is_start=True, **options)


@pytest.fixture
def even_points(monkeypatch):
    """Suggestions are evenly spread points: a method would be compiled for every new space."""
    monkeypatch.setattr(engine, "suggest_point", space_filling_suggestion)


@pytest.fixture
def jobs_in_this_process(monkeypatch):
    """Has a grid of jobs work without processes of its own, which take seconds to start."""

    def in_this_process(make, count):
        work = make()
        return SimpleNamespace(run=lambda items: ((name, work(item)) for name, item in items), close=lambda: None)

    monkeypatch.setattr(grid, "Pool", in_this_process)


@pytest.fixture(scope="session")
def make_space():
    """Makes a search space of random tables and designs: `make_space("s", test="xyz")`."""

    def make(name, n_columns=2, n_rows=30, *, train="ab", validation="v", test="xyz", designs=(3, 3), seed=0):
        rng = np.random.default_rng(seed)

        def tasks(names):
            x = {n: rng.random((n_rows, n_columns), dtype=np.float32) for n in names}
            return {n: Task(n, x[n], 7 * rng.random(n_rows) - 3) for n in names}

        splits, (n_designs, rows) = [tasks(names) for names in (train, validation, test)], designs
        seeds = [f"test{i}" for i in range(n_designs)]
        chosen = {n: {s: rng.permutation(n_rows)[:rows] for s in seeds} for n in (*validation, *test)}
        return SearchSpace(name, *splits, chosen)

    return make


@pytest.fixture(scope="session")
def search_task():
    """Turns a task into a table for the loop, with empty slots that hold garbage."""

    def make(task, empty=0, garbage=np.nan):
        rows = sort_task(task)
        padded = SearchTask(
            np.pad(rows.x, ((0, empty), (0, 0)), constant_values=garbage),
            np.pad(rows.response, (0, empty), constant_values=garbage),
            np.pad(rows.level, (0, empty)),
            np.arange(len(rows.level) + empty) < len(rows.level),
        )
        return jax.device_put(padded)

    return make


@pytest.fixture(scope="session")
def save_checkpoint():
    """Writes a checkpoint of random weights for a search space."""

    def save(folder, space, *, step=0):
        model = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
        config, key = MetaTrainConfig(), jax.random.key(0)
        state = start(model, config, space.n_columns, key)._replace(step=jax.numpy.int32(step))
        ResumableTraining(folder, space, model, config, key).save(TrainingRun(state))

    return save


@pytest.fixture
def interruptible():
    """Programs that are started here can be interrupted, also where a shell started us in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def cli(capsys):
    """Runs a command: (exit status, standard output, standard error)."""

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


@pytest.fixture
def result_file(tmp_path):
    """Writes a result file of made-up runs with many ties: `result_file("a", seed=1)`; its path."""

    def write(name, *, seed=0, n_trials=6, spaces=("s", "t"), tasks=("x", "y", "z"), meta=None, lacks=()):
        rng = np.random.default_rng(seed)
        content = {} if meta is None else {"_meta": meta}
        for run in ((space, task, design) for space in spaces for task in tasks for design in ("test0", "test1")):
            trace = np.maximum.accumulate(rng.integers(0, 5, n_trials + 1) / 4).tolist()
            if run not in lacks:
                content.setdefault(run[0], {}).setdefault(run[1], {})[run[2]] = trace
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
        return path

    return write


@pytest.fixture
def study(tmp_path):
    """A path of a study file."""
    return tmp_path / "study.json"


@pytest.fixture
def numbers_only(monkeypatch):
    """Leaves a report's figures and page out, which take seconds."""
    monkeypatch.setattr("dre_jax.report.figures.draw_all", lambda *_: {})
    monkeypatch.setattr("dre_jax.report.page.write_page", lambda *_: None)
