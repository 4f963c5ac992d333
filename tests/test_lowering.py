"""Programs can be lowered for an accelerator, although there is none here, and keep their precision there."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import export

from dre_jax import native
from dre_jax.data import SearchSpace, build_table, bundled
from dre_jax.data.folds import make_folds
from dre_jax.gp.source_processes import fit_sources
from dre_jax.methods import DRE, METHODS
from dre_jax.methods.baselines.source_processes import source_tasks
from dre_jax.methods.dre import FineTuneConfig, MetaTrainConfig, ModelConfig, init
from dre_jax.methods.dre.steps import evaluate, start, train
from dre_jax.methods.hedged_prior.training import descend_priors
from dre_jax.optim.descent import begin
from dre_jax.runtime.devices import local
from dre_jax.search import Candidates, History
from dre_jax.search.grid import GridConfig, GridRuns, grid, mesh_for
from dre_jax.search.loop import jitted_suggest
from tests.known_methods import by_class

PLATFORMS = ("tpu", "cuda", "cpu")
MODEL = ModelConfig(members=2, hidden=(8, 8), phi=(8,), rho=(8, 4))
METHOD = DRE(model=MODEL, fine_tuning=FineTuneConfig(epochs=3))
KEY = jax.random.key(0)
HIGHEST = jax.lax.Precision.HIGHEST


def lower(f, *arguments):
    """Raises where a compiled function cannot be lowered as one program for all platforms."""
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in native.CALLS]
    export.export(f, platforms=PLATFORMS, disabled_checks=checks)(*arguments)


@pytest.fixture(scope="module")
def space():
    return bundled.load("svm")


@pytest.fixture(scope="module")
def task(space, search_task):
    return search_task(next(iter(space.test.values())))


@pytest.mark.parametrize("context", ["own", pytest.param("shared", marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_meta_training(space, context):
    model, config = ModelConfig(**{**vars(MODEL), "context": context}), MetaTrainConfig(lists_per_step=2)
    table = build_table(space.train)
    state = start(model, config, table.n_columns, KEY)
    lower(train, model, config, table, state, KEY, 3)
    lower(evaluate, model, config, table, state.params, KEY)


@pytest.mark.parametrize(
    ("side_by_side", "several_spaces"),
    [(False, False), (True, False), (True, True)],
)
@pytest.mark.thorough
def test_a_batch_of_runs(space, task, side_by_side, several_spaces):
    mesh, n_trials = mesh_for(local()[:1], 2, 1), 13 if several_spaces else 4
    config = GridConfig(n_trials, mesh, side_by_side, params_by_task=several_spaces, single_loop=several_spaces)
    params = init(MODEL, space.n_columns, KEY)
    params, tables = (jax.tree.map(lambda a: jnp.stack([a, a]), tree) for tree in (params, task))
    if not several_spaces:
        params = jax.tree.map(lambda a: a[0], params)
    key_data = jax.random.key_data(jax.random.split(KEY, 2))
    runs = GridRuns(tables, jnp.zeros((2, 1, 5), jnp.int32), key_data, jnp.zeros((2, 1, 2), jnp.uint32))
    lower(grid, METHOD, params, runs, jnp.ones((1, 1, 2), jnp.int32), config)


FEW = ("gp", "hebo", "fsbo")
MORE = ("deep-ensemble", "dngo", "bohamiann", "dkgp", "metis", "tst", "taf")
SURROGATES = {
    name: method
    for name, entry in METHODS.items()
    if entry.host is None and not isinstance(method := entry.default, DRE)
}


@pytest.fixture(scope="module")
def traced_fit(space):
    """The program of a method's `fit`, and the shapes of what it learns; nothing is compiled."""
    train = {n: replace(task, X=task.X[:20], y=task.y[:20]) for n, task in list(space.train.items())[:2]}
    few = SearchSpace("few", train=train)

    @cache
    def trace(name):
        method = SURROGATES[name]
        if name == "empirical-gp":  # NumPy fits it
            return None, method.abstract_params(few.n_columns)
        if hasattr(method, "rows"):
            tasks = source_tasks(few, method.rows, KEY)  # NumPy draws them
            return jax.make_jaxpr(partial(fit_sources, method.fitting), return_shape=True)(tasks)
        if name == "hedged-prior":
            params = method.abstract_params(few.n_columns)
            # Folds and rows are drawn by NumPy, so that `fit` is no one program.
            folds = make_folds(few.train, members=1, folds=2, histories=1, rows=8)
            step = partial(descend_priors, method.prior, method.training, folds.slots, folds.table, folds.all_tasks)
            n_params = sum(a.size for a in jax.tree.leaves(params.priors)) // method.prior.members
            descent = begin(jnp.zeros((1, n_params)), keep_average=True)
            return jax.make_jaxpr(step)(descent, jnp.arange(1), jnp.arange(1), KEY), params
        return jax.make_jaxpr(lambda: method.fit(few, KEY), return_shape=True)()

    return trace


@pytest.mark.parametrize("name", ["dre", *FEW, *(pytest.param(name, marks=pytest.mark.thorough) for name in MORE)])
@pytest.mark.slow
def test_one_suggestion(name, space, task, traced_fit):
    if name == "dre":
        method, params = METHOD, init(MODEL, space.n_columns, KEY)
    else:
        method, params = SURROGATES[name], traced_fit(name)[1]
    inputs = History(*(a[:16] for a in task[:4])), Candidates(task.x, task.where), KEY, jnp.int32(0)
    lower(jitted_suggest, method, params, *inputs)


def products(jaxpr):
    """The matrix products of a program, of all programs inside it too."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=lambda a: hasattr(a, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from products(inner)


def written_in(equation):
    """The file of the package in which an equation was written; a gradient's is that of what it is the gradient of."""
    frames = equation.source_info.traceback.frames
    return next(Path(frame.file_name).name for frame in frames if "dre_jax/" in frame.file_name)


@pytest.mark.parametrize("name", by_class(SURROGATES))
def test_only_networks_have_products_of_low_precision(name, space, task, traced_fit):
    """Accelerators round the factors of a product, of which factorisations and differences must not be made."""
    method, (fit, params) = SURROGATES[name], traced_fit(name)
    arguments = History(*(a[:16] for a in task[:4])), Candidates(task.x, task.where), KEY
    acquire = jax.make_jaxpr(method.acquire)(params, *arguments)
    result = [product for program in (fit, acquire) if program is not None for product in products(program.jaxpr)]
    low = {written_in(a) for a in result if a.params["precision"] != (HIGHEST, HIGHEST)}
    assert low <= {"mlp.py", "networks.py"}
    assert bool(result) == (name != "random")
