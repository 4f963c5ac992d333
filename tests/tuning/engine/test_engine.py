"""What to try next, from what was tried."""

import threading
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import Categorical, ConfigError, DataError, EngineConfig, Float, Int, RandomSearch, Space, Surrogate, Trial
from dre_jax.methods import find
from dre_jax.runtime import jit, kept_programs
from dre_jax.suggest.proposals import propose
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.suggestion.feasibility import fit_feasibility
from dre_jax.tuning.trials.objectives import objectives_of
from dre_jax.tuning.trials.selection import select_trials
from tests.error_messages import error_table
from tests.known_methods import Valued
from tests.known_trials import complete_trial, failed_trials

SPACE = Space(
    {"x": Float(0.0, 1.0), "kernel": Categorical(["rbf", "poly"]), "degree": Int(2, 5, when={"kernel": "poly"})}
)
GP = Surrogate(SPACE, "gp", find("gp").make(), None)
DRAWS = Surrogate(SPACE, "random", RandomSearch(), None)


@cache
def turning(turns):
    """A method that values candidates by their first column, or by minus that if the history has so many trials."""
    return Valued(lambda history, x: jnp.where(jnp.sum(history.where) == turns, -1.0, 1.0) * x[:, 0])


def rising(space=SPACE, turns=-1, start=(), **options):
    surrogate = Surrogate(space, "rising", turning(turns), None, start)
    return Engine(space, objectives_of("maximize"), surrogate, **options)


def observations(n, space=SPACE, seed=0):
    rng = np.random.default_rng(seed)
    return [complete_trial(space.params(point), float(rng.normal())) for point in rng.random((n, len(space)))]


def test_an_engine_remembers_nothing():
    """Another one, and one that has suggested much else, give the same; another number or seed gives another."""
    evaluated = observations(5)
    used = Engine(SPACE, objectives_of("maximize"), DRAWS, seed=3)
    for number in range(3):
        used.propose(observations(4, seed=number), number=number)
    expected = Engine(SPACE, objectives_of("maximize"), DRAWS, seed=3).propose(evaluated, number=7).params
    assert used.propose(evaluated, number=7).params == expected
    assert used.propose(evaluated, number=8).params != expected
    assert Engine(SPACE, objectives_of("maximize"), DRAWS, seed=4).propose(evaluated, number=7).params != expected


def test_the_surrogates_start_comes_first_and_once():
    start = ({"x": 0.25, "kernel": "rbf"}, {"x": 0.75, "kernel": "poly", "degree": 3})
    engine = rising(start=start)
    first = engine.propose([], number=0).params
    assert first == start[0]
    for trials in ([complete_trial(start[0], 1.0)], [Trial(0, start[0])], failed_trials([start[0]])):
        assert engine.propose(trials, number=1).params == start[1]
    assert engine.propose([], number=1, pending=[start[0]]).params == start[1]
    third = engine.propose([complete_trial(start[0], 1.0)], pending=[start[1]], number=2).params
    assert third["x"] > 0.95  # the method's own
    assert rising(start=start).propose(observations(2), number=2).params not in start  # as many were tried already


def test_pending_trials_have_imputed_responses_and_slots_of_the_largest_bucket():
    """The method turns round once it sees five trials."""
    evaluated, running = observations(3), [o.params for o in observations(2, seed=1)]

    def high(**options):
        return rising(turns=5, config=EngineConfig(**options)).propose(evaluated, number=5, pending=running).params

    assert high(pending_strategy="mean")["x"] < 0.05
    assert high(pending_strategy="none")["x"] > 0.95
    evaluated, running = observations(20), [o.params for o in observations(5, seed=1)]
    # The method turns round if it sees 16 trials, told and running.
    engine = rising(turns=16, config=EngineConfig(max_history=16))
    assert engine.propose(evaluated, number=25, pending=running).params["x"] < 0.05


@pytest.mark.parametrize(("n", "room"), [(3, 8), (8, 8), (9, 8), (40, 8), (40, 7)])
def test_which_trials_a_method_is_shown(n, room):
    """Against a slow loop: the best quarter, and evenly spaced others, in their order."""
    rng = np.random.default_rng(n)
    responses = rng.integers(0, 6, n).astype(float)
    expected = list(range(n))
    if n > room:
        best = sorted(expected, key=lambda i: (-responses[i], i))[: room // 4]
        others, count = [i for i in expected if i not in best], room - len(best)
        expected = sorted([*best, *[others[round(i * (len(others) - 1) / (count - 1))] for i in range(count)]])
    assert select_trials(responses, room).tolist() == expected
    assert len(expected) == min(n, room)


def test_trials_outside_of_the_history_are_not_proposed_again():
    """Levels enough for a hundred trials, most of them too many for the method."""
    space = Space({"x": Int(0, 63), "y": Int(0, 3)})
    engine = rising(space, seed=1, config=EngineConfig(max_history=16, failure_model=False))
    top = [{"x": 63 - i % 8, "y": i // 8} for i in range(32)]
    evaluated = [complete_trial(params, -i) for i, params in enumerate(top)]
    result = engine.propose([*evaluated[:30], *failed_trials([top[31]])], number=30, pending=[top[30]]).params
    assert result["x"] == 55
    assert result not in top


def test_nothing_is_compiled_inside_a_bucket():
    """Three programs for a new bucket, the fit and two of the search, whatever runs, has failed, or is asked for."""
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 2.0), "z": Int(0, 9)})  # which no other test compiles for
    engine = rising(space, seed=5)
    sizes, compiled = (1, 2, 7, 16, 31, 32, 33, 50, 64), []
    before = propose._cache_size()
    for n in sizes:
        evaluated = observations(n, space)
        engine.propose(evaluated[: max(n - 2, 1)], number=n, pending=[o.params for o in evaluated[max(n - 2, 1) :]])
        compiled.append(propose._cache_size() - before)
    assert compiled == [3, 3, 3, 3, 3, 3, 6, 6, 6]
    failed = [o.params for o in observations(6, space, 1)]
    for model, n_programs in ((False, 0), (True, 2)):  # another search with a model of failures, which is one too
        engine = rising(space, seed=6, config=EngineConfig(failure_model=model))
        engine.propose(observations(6, space), number=6)
        before, models = propose._cache_size(), fit_feasibility._cache_size()
        for n in (3, 6):
            engine.propose([*observations(3 * n, space), *failed_trials(failed[:n])], number=n)
            assert (propose._cache_size() - before, fit_feasibility._cache_size() - models) == (n_programs, int(model))


@pytest.mark.slow
def test_what_is_compiled_ahead_is_what_a_suggestion_uses(monkeypatch, tmp_path):
    """With a model of failures too: all in other threads, none twice, and the suggestion of programs one by one."""
    trials, threads = [*observations(5), *failed_trials([{"x": 1.0, "kernel": "rbf"}])], []

    def spy(*arguments):
        threads.append(threading.current_thread())
        return compile_program(*arguments)

    compile_program = kept_programs._compile
    monkeypatch.setattr(kept_programs, "_compile", spy)
    monkeypatch.setattr(jit, "less_effort_options", lambda: jit.LESS_EFFORT)
    results = []
    for folder in (None, tmp_path, tmp_path):
        monkeypatch.setattr(jit, "enabled_folder", lambda folder=folder: folder)
        results.append(rising(seed=9).propose(trials, number=5))
    assert results[0] == results[1] == results[2]
    assert len(threads) == 5
    assert threading.current_thread() not in threads


def test_large_numbers_in_a_small_range_differ():
    space = Space({"x": Float(1e9, 1e9 + 1.0), "y": Float(0.0, 1.0)})
    evaluated = [complete_trial({"x": 1e9 + i / 10, "y": 0.5}, float(i)) for i in range(10)]
    engine = rising(space)
    result = [engine.propose(evaluated, number=number).params["x"] - 1e9 for number in range(10, 13)]
    assert min(result) > 0.95  # the method's own, not one that is drawn because all seem to be tried


def proposal(*trials, **more):
    return lambda: rising().propose(trials, number=0, **more)


test_refused = error_table(
    DataError,
    (proposal(complete_trial({"x": 0.5, "kernel": "rbf"}, float("nan"))), "must be a number, but got NaN"),
    (proposal(complete_trial({"x": 0.5}, 1.0)), "'kernel' is missing"),
    (proposal(pending=[{"x": 2.0, "kernel": "rbf"}]), "but got 2.0"),
    (proposal(*failed_trials([{"z": 2.0}])), "but got 'z'"),
)


test_pending_strategies_are_checked_before_the_first_trial = error_table(
    ConfigError,
    (lambda: EngineConfig(pending_strategy="best"), "must be one of min, mean, max, believer, draw, none"),
    (
        lambda: Engine(SPACE, objectives_of(), GP, config=EngineConfig(pending_strategy="draw")),
        "draws need a method that has several models, but got GaussianProcess",
    ),
    (
        lambda: Engine(SPACE, objectives_of(), DRAWS, config=EngineConfig(pending_strategy="believer")),
        "a believer needs a method with an acquisition function, but got RandomSearch",
    ),
)
