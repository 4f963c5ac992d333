"""Many searches of functions in JAX: each is the study that `Optimizer` runs."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.functions import Measurement, optimize_functions, program, unit_space
from dre_jax.functions.blocks import SearchBlocks
from dre_jax.functions.search_file import FinishedSearch, SearchFile
from dre_jax.runtime.jit import less_effort_options
from dre_jax.tuning import (
    Categorical,
    Count,
    EngineConfig,
    Evaluated,
    Float,
    Formula,
    Int,
    Less,
    Optimizer,
    Space,
    Sum,
    Surrogate,
    past_of,
)
from dre_jax.tuning.objectives.single import DEFAULT_METHOD
from tests.error_messages import error_table, raises_line
from tests.processes import run_python

SQUARE = unit_space(2)
CENTRES = np.array([0.2, 0.6], np.float32)
SEEDS = (3, 8)
MIXED = Space(
    {
        "a": Float(1e-3, 10.0, log=True),
        "n": Int(2, 9),
        "c": Categorical(("x", "y", "z"), default="y"),
        "b": Float(0.0, 1.0, when={"c": "x"}),
    }
)

RULED = Space(
    {"a": Float(0.0, 1.0), "b": Float(0.0, 1.0, likely=(0.5, 0.7)), "c": Float(0.0, 1.0, default=0.25)},
    rules=[Less("a", "b"), Sum(["a", "b", "c"], equals=1.0)],
)


RECIPE = Space(
    dict.fromkeys("abcd", Float(0.0, 1.0)),
    rules=[Sum(list("abcd"), equals=1.0), Count(list("abcd"), at_most=2), Formula("a * b <= 0.1")],
)


def waves(centre, x):
    """About a centre."""
    return jnp.sum((x - centre) ** 2) + 0.1 * jnp.sum(jnp.cos(9.0 * x))


def half_fails(centre, x):
    return jnp.where(x[0] < 0.4, jnp.nan, waves(centre, x))


def ruled(centre, params):
    return (params["a"] - 0.3 * centre) ** 2 + params["b"] * params["c"]


def mixed(centre, params):
    """All is equal where the centre is negative."""
    bumps = jnp.array([0.5, 0.0, 0.3])[params["c"]]
    bumps += jnp.where(params["c"] == 0, params["b"], 0.0)
    bowl = (jnp.log(params["a"]) - centre) ** 2 + 0.05 * jnp.abs(params["n"] - 5).astype(jnp.float32)
    return jnp.where(centre < 0.0, centre, bowl + bumps)


TWO = {"near": "minimize", "far": "maximize"}


def trade_off(centre, x):
    """Two objectives that trade off along x1 = 0, with failures, constraints and a cost; one diverges at a side."""
    near, far = (x[0] - centre) ** 2 + x[1], -((x[0] - 1.0) ** 2) - x[1]
    far = jnp.where(x[0] > 0.9, -jnp.inf, jnp.where(x[0] < 0.1, jnp.nan, far))
    constraints = {"memory": 0.4 - x[0], "delay": jnp.where(x[1] > 0.9, jnp.nan, x[1] - 0.8)}
    return Measurement({"near": near, "far": far}, constraints, cost=jnp.exp(2.0 * x[0]))


def constrained(centre, x):
    value = jnp.sum((x - centre) ** 2)
    return Measurement(jnp.where(x[1] > 0.9, jnp.nan, value), {"memory": x[0] - 0.5}, jnp.where(x[0] < 0.1, 0.0, 3.0))


def numbers_of(function, centre, trial):
    """The arguments of `Optimizer.tell`."""
    value, constraints, cost = function(centre, np.array([trial["x0"], trial["x1"]], np.float32))
    value, constraints, cost = jax.tree.map(float, (value, constraints, cost))
    return value, {"constraints": constraints, "cost": cost if cost > 0.0 else None}


def surrogate_of(method, **settings):
    """What a method learns from three studies of `waves`."""
    random, evaluate = np.random.default_rng(0), jax.jit(waves)
    studies = {}
    for centre in (0.3, 0.5, 0.1):
        points = random.random((12, 2), np.float32)
        values = [float(evaluate(np.float32(centre), point)) for point in points]
        pairs = zip(points.tolist(), values, strict=True)
        studies[str(centre)] = [Evaluated({"x0": x, "x1": y}, value) for (x, y), value in pairs]
    past = past_of(SQUARE, studies, direction="minimize")
    return Surrogate.fit(past, method=method, settings=settings or None)


def study(function, centre, seed, n, surrogate=None, *, space=SQUARE, method=DEFAULT_METHOD, batch=1, config=None):
    """The points of the trials of one `Optimizer`."""
    optimizer = Optimizer(space, surrogate, seed=seed, config=config or EngineConfig(method=method))
    compiled = jax.jit(partial(function, centre))
    while len(optimizer.trials) < n:
        for trial in optimizer.ask(batch):
            if space is SQUARE:
                argument = np.array([trial["x0"], trial["x1"]], np.float32)
            elif space is RULED or space is RECIPE:
                argument = {name: np.float32(number) for name, number in trial.params.items()}
            else:
                argument = {"a": np.float32(trial["a"]), "n": np.int32(trial["n"]), "c": "xyz".index(trial["c"])}
                argument["b"] = np.float32(trial.params.get("b", 0.5))
            value = float(compiled(argument))
            optimizer.tell_failed(trial) if np.isnan(value) else optimizer.tell(trial, value)
    return np.array([space.point(trial.params) for trial in optimizer.trials])


def assert_same(
    function, n, bound, *, tasks=CENTRES, space=2, batch=1, method=DEFAULT_METHOD, surrogate=None, config=None, exact=0
):
    """Compares all trials of two tasks and two seeds with those of `Optimizer`, of which the first must be equal."""
    options = {"method": method} if surrogate is None else {"surrogate": surrogate}
    options |= {} if config is None else {"failure_model": config.failure_model}
    searches = optimize_functions(function, tasks, space, n_trials=n, seeds=SEEDS, batch_size=batch, **options)
    for i, centre in enumerate(tasks):
        for j, seed in enumerate(SEEDS):
            own = {"space": SQUARE if space == 2 else space, "method": method, "batch": batch, "config": config}
            points = study(function, centre, seed, n, surrogate, **own)
            np.testing.assert_allclose(searches.points[i, j], points, rtol=0.0, atol=bound)
            np.testing.assert_array_equal(searches.points[i, j, :exact], points[:exact])
    return searches


class TestOptimizer:
    """Searches evaluate what `Optimizer` does."""

    @pytest.mark.slow
    def test_random(self):
        searches = assert_same(waves, 12, 0.0, method="random")
        evaluate = jax.jit(jax.vmap(jax.vmap(jax.vmap(waves, (None, 0)), (None, 0))))
        values = evaluate(CENTRES, searches.points.astype(np.float32))
        np.testing.assert_allclose(searches.values, values, rtol=1e-5)
        np.testing.assert_array_equal(searches.best, np.minimum.accumulate(searches.values, axis=-1))

    @pytest.mark.slow
    def test_the_default_method(self):
        """With logarithms, whole numbers, conditions and choices, and a default that is evaluated first."""
        assert_same(mixed, 12, 1e-7, space=MIXED)

    @pytest.mark.slow
    @pytest.mark.thorough
    def test_the_default_method_on_a_square(self):
        assert_same(waves, 14, 1e-9)

    @pytest.mark.slow
    @pytest.mark.thorough
    def test_hedged_prior(self):
        assert_same(waves, 10, 1e-9, surrogate=surrogate_of("hedged-prior"))

    @pytest.mark.thorough
    @pytest.mark.parametrize(("method", "settings"), [("gcp", {"prior.steps": 5}), ("dre", {})])
    def test_methods_of_float32(self, method, settings):
        """Rounding of responses in float32 moves a value's maximum; the design and first trials are the same."""
        assert_same(waves, 10, 0.02, surrogate=surrogate_of(method, **settings), exact=7)

    @pytest.mark.thorough
    def test_failures_in_batches(self):
        searches = assert_same(half_fails, 12, 1e-6, batch=3)
        assert 0 < np.isnan(searches.values).sum() < searches.values.size / 2

    @pytest.mark.slow
    def test_failures_without_a_model(self):
        """Searches keep their distance from failures, and learn nothing else of them."""
        assert_same(half_fails, 8, 0.0, method="random", config=EngineConfig(method="random", failure_model=False))

    @pytest.mark.thorough
    def test_rules_and_likely_values(self):
        searches = assert_same(ruled, 8, 1e-6, space=RULED)
        assert all(RULED.allows(RULED.params(point)) for point in searches.points.reshape(-1, 3))

    @pytest.mark.thorough
    def test_counts_and_formulas(self):
        searches = assert_same(lambda centre, p: (p["a"] - centre) ** 2 - p["b"] * p["c"], 8, 1e-6, space=RECIPE)
        configurations = [RECIPE.params(point) for point in searches.points.reshape(-1, 4)]
        assert all(sum(value > 0.0 for value in p.values()) <= 2 and p["a"] * p["b"] <= 0.1 for p in configurations)

    @pytest.mark.thorough
    def test_more_trials_than_a_method_gets(self):
        """And more than a Sobol sequence has."""
        assert_same(waves, 258, 0.0, tasks=CENTRES[:1], method="random")

    @pytest.mark.slow
    def test_values_without_information(self):
        # In the program of `test_the_default_method`.
        searches = assert_same(mixed, 12, 1e-7, tasks=-CENTRES, space=MIXED)
        assert (searches.best == -CENTRES[:, None, None]).all()

    def test_small_spaces_are_listed(self):
        """Each of twelve configurations is evaluated once, then the first again; values are whole numbers."""
        small = Space({"n": Int(2, 5), "c": Categorical(("x", "y", "z"))})
        searches = optimize_functions(lambda _, params: params["n"], None, small, n_trials=13, method="random")
        points = searches.points[0, 0]
        assert len(np.unique(points[:12], axis=0)) == 12
        assert searches.values.dtype == np.float64
        assert searches.values[0, 0].tolist() == [small.params(point)["n"] for point in points]


def random_searches(function=waves, tasks=CENTRES, space=2, **options):
    return optimize_functions(function, tasks, space, **({"n_trials": 6, "seeds": SEEDS, "method": "random"} | options))


def test_a_search_depends_on_its_task_and_seed_alone():
    both, alone = random_searches(), random_searches(tasks=CENTRES[1:], seeds=SEEDS[1:])
    np.testing.assert_array_equal(alone.points[0, 0], both.points[1, 1])
    assert not np.array_equal(both.points[0, 0], both.points[0, 1])


@pytest.mark.slow
def test_numbers_of_python_and_numpy_are_taken():
    searches = random_searches(lambda _, params: 7, space={"x": Float(0.0, 1.0)}, seeds=np.int64(1))
    assert searches.values.dtype == np.float64
    assert (searches.values == 7.0).all()


@pytest.mark.slow
def test_noise_has_a_key_of_its_own_in_each_trial():
    def noise_alone(centre, x, key):
        return jax.random.normal(key) + 0.0 * x[0]

    first, same, other = (random_searches(noise_alone, key=jax.random.key(one)) for one in (0, 0, 1))
    assert len(np.unique(first.values)) == first.values.size
    np.testing.assert_array_equal(first.values, same.values)
    assert not np.isin(other.values, first.values).any()


@pytest.mark.parametrize("method", ["random", pytest.param("gp-mixture", marks=pytest.mark.thorough)])
@pytest.mark.multiprocess
def test_side_by_side_on_a_mesh_equals_one_by_one(method):
    """In a process with two devices, which vmap and shard_map spread three searches over."""
    code = f"""
import jax, numpy as np
from dre_jax.errors import ConfigError, DataError
from dre_jax.functions import optimize_functions
from dre_jax.search.execution import ExecutionConfig
bowl = lambda centre, x: ((x - centre) ** 2).sum()
tasks = np.array([0.2, 0.5, 0.9], np.float32)
one, all = (
    optimize_functions(bowl, tasks, 2, n_trials=8, method="{method}", execution=ExecutionConfig(side_by_side=side))
    for side in (False, True)
)
print(len(jax.devices()), np.abs(one.points - all.points).max() < 1e-6)
"""
    assert run_python(code, JAX_NUM_CPU_DEVICES="2").stdout.split() == ["2", "True"]


@pytest.mark.slow
@pytest.mark.parametrize("failure_model", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_objectives_constraints_and_costs_are_those_of_an_optimizer(failure_model):
    """With a budget, failures, and trials that diverge in one objective; a second call compiles nothing."""
    options = {"budget": 50.0, "reference_point": {"near": 1.0, "far": -1.0}, "failure_model": failure_model}
    config = EngineConfig(method="gp", **options)
    call = partial(optimize_functions, trade_off, CENTRES, 2, n_trials=12, method="gp", directions=TWO, **options)
    searches, before = call(seeds=SEEDS), programs_compiled()
    np.testing.assert_array_equal(call(seeds=(5, 1)).points.shape, searches.points.shape)
    assert programs_compiled() == before
    for i, centre in enumerate(CENTRES):
        for j, seed in enumerate(SEEDS):
            optimizer = Optimizer(SQUARE, directions=TWO, seed=seed, config=config)
            for k in range(12):
                trial = optimizer.ask()
                np.testing.assert_allclose([trial["x0"], trial["x1"]], searches.points[i, j, k], rtol=0.0, atol=1e-6)
                value, outcome = numbers_of(jax.jit(trade_off), centre, trial)
                optimizer.tell(trial, value, **outcome)
            assert [trial.number for trial in optimizer.front] == np.flatnonzero(searches.front[i, j]).tolist()
            assert searches.hypervolume[i, j] == pytest.approx(optimizer.hypervolume, abs=1e-6)
    feasible = np.where(searches.constraints["memory"] <= 0.0, searches.values[..., 1], np.nan)
    feasible = np.where(searches.constraints["delay"] <= 0.0, feasible, np.nan)
    np.testing.assert_array_equal(searches.best[..., 1], np.fmax.accumulate(feasible, axis=-1))
    assert np.isinf(searches.values).any()
    assert np.isnan(searches.values).any()


FOUR = {"a": "minimize", "b": "minimize", "c": "maximize", "d": "minimize"}


def four_values(centre, x):
    """Squared distances from four points; one fails at a side."""
    a, c = (x[0] - centre) ** 2 + x[1] ** 2, -((x[0] - 1.0) ** 2) - (x[1] - 0.5) ** 2
    b, d = x[0] ** 2 + (x[1] - 1.0) ** 2, (x[0] - 0.6) ** 2 + (x[1] - 0.2) ** 2
    values = {"a": a, "b": b, "c": jnp.where(x[0] < 0.05, jnp.nan, c), "d": d}
    return Measurement(values, {"memory": 0.2 - x[0]}, cost=jnp.exp(x[1]))


@pytest.mark.slow
def test_four_objectives_are_those_of_an_optimizer():
    """Two at a time; a second call compiles nothing."""
    options = {"failure_model": False, "budget": 60.0}
    call = partial(optimize_functions, four_values, CENTRES, 2, n_trials=12, method="gp", directions=FOUR, **options)
    searches, before = call(seeds=(3,), batch_size=2), programs_compiled()
    call(seeds=(4,), batch_size=2)
    assert programs_compiled() == before
    for i, centre in enumerate(CENTRES):
        optimizer = Optimizer(SQUARE, directions=FOUR, seed=3, config=EngineConfig(method="gp", **options))
        for k in range(0, 12, 2):
            for j, trial in enumerate(optimizer.ask(2)):
                np.testing.assert_allclose(
                    [trial["x0"], trial["x1"]], searches.points[i, 0, k + j], rtol=0.0, atol=1e-6
                )
                value, outcome = numbers_of(jax.jit(four_values), centre, trial)
                optimizer.tell(trial, value, **outcome)
        assert [trial.number for trial in optimizer.front] == np.flatnonzero(searches.front[i, 0]).tolist()


def programs_compiled():
    return program._compiled(tuple(less_effort_options().items()))._cache_size()


@pytest.mark.slow
def test_constraints_and_costs_of_a_single_objective(tmp_path):
    path = tmp_path / "searches.jsonl"
    options = {"n_trials": 8, "path": path, "failure_model": False}
    searches = random_searches(constrained, **options)
    x, y = np.moveaxis(searches.points, -1, 0)
    np.testing.assert_allclose(searches.constraints["memory"], x - 0.5, atol=1e-6)
    np.testing.assert_array_equal(searches.costs, np.where(x < 0.1, np.nan, 3.0))
    feasible = np.where((x <= 0.5) & (y <= 0.9), searches.values, np.nan)
    np.testing.assert_array_equal(searches.best, np.fmin.accumulate(feasible, axis=-1))
    optimizer = Optimizer(SQUARE, seed=SEEDS[0], config=EngineConfig(method="random", failure_model=False))
    for point in searches.points[0, 0]:
        trial = optimizer.ask()
        np.testing.assert_allclose([trial["x0"], trial["x1"]], point, rtol=0.0, atol=1e-6)
        value, outcome = numbers_of(constrained, CENTRES[0], trial)
        optimizer.tell(trial, value, **outcome)
    again = random_searches(constrained, **options)
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(searches), strict=True):
        np.testing.assert_array_equal(one, other)


class TestFile:
    """Finished searches in a file."""

    def test_a_killed_call_goes_on(self, tmp_path, monkeypatch):
        path, expected = tmp_path / "searches.jsonl", random_searches()
        random_searches(path=path)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:3]) + lines[3][:40])
        ran = []
        run = SearchBlocks.run
        monkeypatch.setattr(SearchBlocks, "run", lambda self, places: [ran.extend(places), run(self, places)][1])
        resumed = random_searches(path=path)
        assert len(ran) == 2
        np.testing.assert_array_equal(resumed.points, expected.points)
        np.testing.assert_array_equal(resumed.values, expected.values)
        again = random_searches(path=path)
        assert len(ran) == 2
        np.testing.assert_array_equal(again.best, expected.best)

    def test_blocks_are_written_before_an_interruption(self, tmp_path, monkeypatch):
        path, run = tmp_path / "searches.jsonl", SearchBlocks.run

        def interrupted(self, places):
            yield next(run(self, places))
            raise KeyboardInterrupt

        monkeypatch.setattr(SearchBlocks, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            random_searches(path=path)
        assert len(path.read_text().splitlines()) > 1

    def test_a_full_disk_is_one_line(self, tmp_path):
        path = tmp_path / "searches.jsonl"
        file = SearchFile(path, {})
        path.unlink()
        path.symlink_to("/dev/full")
        with raises_line(DataError, "cannot be written: No space left"):
            file.add([((0, 3), FinishedSearch(np.zeros((1, 2)), np.zeros(1)))])

    def test_arrays_that_a_function_closes_over_count(self, tmp_path):
        def distance_from(place):
            return lambda _, x: jnp.sum((x - place) ** 2)

        path = tmp_path / "searches.jsonl"
        random_searches(distance_from(jnp.array([0.1, 0.2])), path=path)
        with raises_line(DataError, "differs in function"):
            random_searches(distance_from(jnp.array([0.1, 0.3])), path=path)

    @pytest.mark.parametrize("change", [{"n_trials": 7}, {"function": half_fails}, {"tasks": 2 * CENTRES}])
    def test_other_searches_are_refused(self, tmp_path, change):
        random_searches(path=tmp_path / "searches.jsonl")
        with raises_line(DataError, "must hold searches of this call, but differs in"):
            random_searches(path=tmp_path / "searches.jsonl", **change)


def calls_the_host(centre, x):
    return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((), x.dtype), x[0])


def needs_numbers(centre, x):
    return float(x[0])


def test_answers_are_values():
    """True or false."""
    searches = random_searches(lambda threshold, x: x[0] > threshold, tasks=np.array([0.6], np.float32))
    assert searches.values.dtype == np.float64
    assert searches.values.tolist() == (searches.points[..., 0].astype(np.float32) > np.float32(0.6)).tolist()


test_bad_functions_get_one_line = error_table(
    ConfigError,
    (lambda: random_searches(lambda _, x: x), "returns float32[2]"),
    (lambda: random_searches(lambda _, x: jax.lax.complex(x[0], x[1])), "returns complex64[]"),
    (lambda: random_searches(lambda _, x: jax.random.key(0)), "returns key<fry>[]"),
    (lambda: random_searches(lambda _, x: None), "returns nothing"),
    (lambda: random_searches(needs_numbers), "needs_numbers fails where JAX traces it: ConcretizationTypeError"),
    (lambda: random_searches(calls_the_host), "calls_the_host calls the host"),
    (lambda: random_searches(n_trials=4097), "1 <= n_trials <= 4096 must hold"),
    (lambda: random_searches(batch_size=4), "n_trials must be a multiple of batch_size"),
    (lambda: random_searches(n_trials=6.0), "n_trials must be a whole number from 1, but got 6.0"),
    (lambda: random_searches(n_trials=None), "n_trials must be a whole number from 1, but got None"),
    (lambda: random_searches(batch_size=0), "batch_size must be a whole number from 1, but got 0"),
    (lambda: random_searches(method="gcp"), "pass surrogate=Surrogate.fit"),
    (lambda: random_searches(method="tpe"), "must be one in JAX, as gp and random, but got 'tpe'"),
    (lambda: random_searches(space=2.0), "a space must map at least one name"),
    (lambda: random_searches(seeds=2.0), "seeds must be a whole number"),
    (lambda: random_searches(seeds=[]), "at least one seed"),
    (lambda: random_searches(seeds=-1), "seeds must be a whole number from 1, but got -1"),
    (lambda: random_searches(space=-1), "space must be a whole number from 1, but got -1"),
    (lambda: random_searches(space=True), "space must be a whole number from 1, but got True"),
    (lambda: random_searches(key=0), "a key as of jax.random.key(0)"),
    (lambda: random_searches(directions=TWO), "needs gp-mixture or gp, but the method is random"),
    (lambda: random_searches(directions=TWO, method="gp"), "must return the objectives 'near', 'far', but returns"),
    (lambda: random_searches(lambda _, x: (x, x), directions=TWO, method="gp"), "returns float32[2], float32[2]"),
    (lambda: random_searches(lambda _, x: Measurement(x[0], {"a": x})), "returns float32[], float32[2]"),
)


def test_a_file_of_something_else(tmp_path):
    (tmp_path / "picture").write_bytes(b"\xff\xfe\n")
    with pytest.raises(DataError, match="picture: not UTF-8 text at byte 0"):
        random_searches(path=tmp_path / "picture")


test_tasks_must_agree = error_table(
    DataError,
    (lambda: random_searches(tasks=(CENTRES, CENTRES[:1])), "the same number of tasks in front"),
    (lambda: random_searches(tasks=0.5), "the same number of tasks in front, at least one, but have the shapes ()"),
    (lambda: random_searches(tasks=np.zeros(0)), "at least one, but have the shapes (0,)"),
    (lambda: random_searches(tasks=waves), "tasks must be arrays of numbers, or None"),
    (lambda: random_searches(path=Path()), "must be a regular file, a pipe or a device, but is a folder"),
)
