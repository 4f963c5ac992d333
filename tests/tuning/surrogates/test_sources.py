"""Which past studies helped: the test makes them, so that it knows."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import optuna
import pytest
from scipy.stats import kendalltau, multivariate_t

from dre_jax import Evaluated, Float, Optimizer, SearchSpace, Space, Surrogate, Task, Trial, past_of
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.gp.task_processes import UNINFORMED_LENGTHSCALES, UNINFORMED_NOISE_VAR
from dre_jax.methods import find
from dre_jax.methods.checkpoints.fitted import load_fitted, save_fitted
from dre_jax.methods.storage.provenance import versions
from dre_jax.tuning.optuna import DRESampler
from dre_jax.tuning.past import studies as past_studies
from dre_jax.tuning.past.studies import compare_studies, keep_studies
from dre_jax.tuning.surrogates.sources import PastCheck
from dre_jax.tuning.trials.objectives import objectives_of
from tests.known_methods import SIMPLE, TaskMeans, zero_params
from tests.oracles import fitted_process, matern52

SPACE = Space({name: Float(0.0, 1.0) for name in "abc"})
SMALL = {"training.steps": 100, "prior.trend": (8,), "prior.layers": (4,)} | SIMPLE


def loss(center):
    return lambda points: ((points - center) ** 2 * [1.0, 0.3, 0.1]).sum(axis=1)


def waves(phase):
    return lambda points: np.sin(6.0 * points @ [0.5, 1.0, -1.0] + phase)


def trials_at(function, points):
    return [Evaluated(dict(zip("abc", map(float, x), strict=True)), float(v)) for x, v in zip(points, function(points))]  # noqa: B905


def surrogate_of(studies, direction="minimize"):
    """With parameters of zeros, which the comparison of studies does not need."""
    past = past_of(SPACE, studies, direction=direction)
    selected = keep_studies(past.search_space(), jax.random.key(0))
    method = find("gcp").make()
    return Surrogate(SPACE, "gcp", method, zero_params(method, 3), direction=direction, studies=selected)


def search(function, random):
    """Twenty trials that close in on the best, as those of a search do."""
    points = random.random((8, 3))
    for width in (0.3, 0.1, 0.03):
        best = points[function(points).argmin()]
        points = np.vstack([points, np.clip(best + width * random.normal(size=(4, 3)), 0, 1)])
    return trials_at(function, points)


@pytest.mark.slow
def test_equal_reversed_and_unrelated_studies_differ():
    right = 0
    for seed in range(10):
        random = np.random.default_rng(seed)
        here = loss(random.random(3))
        functions = {"reversed": lambda x, f=here: -f(x), "unrelated": waves(random.random() * 6), "same": here}
        studies = {name: trials_at(f, random.random((25, 3))) for name, f in functions.items()}
        result = surrogate_of(studies).sources(search(here, random))
        by_name = {one.name: one for one in result.studies}
        assert by_name["reversed"].helped is False
        assert by_name["unrelated"].helped is not True or by_name["unrelated"].weight < 0.5
        ranking = sorted(by_name, key=lambda name: -by_name[name].agreement)
        right += ranking == ["same", "unrelated", "reversed"] and result.studies[0].name == "same"
        few = surrogate_of(studies).sources(search(here, random)[:3]).studies
        assert all(abs(one.agreement) < 3 * one.agreement_error for one in few)  # three trials claim little
    assert right >= 9


@pytest.mark.slow
def test_numbers_equal_those_of_scipy():
    """Kendall's correlation, and densities by a float64 loop; a longer study beside it changes nothing."""
    random = np.random.default_rng(0)
    x, rows = random.random((15, 3)).astype(np.float32), random.random((20, 3)).astype(np.float32)
    y, there = -loss(0.4)(x) + 0.05 * random.normal(size=15), -loss(0.3)(rows)
    tasks = {"one": Task("one", rows, there), "longer": Task("longer", *_with_waves(random.random((70, 3))))}
    selected = keep_studies(SearchSpace("s", tasks), jax.random.key(0))
    assert (selected.names, selected.tasks.x.shape) == (["one", "longer"], (2, 96, 3))
    compared = compare_studies(selected, x, y)
    alone = compare_studies(keep_studies(SearchSpace("s", {"one": tasks["one"]}), jax.random.key(0)), x, y)
    for whole, part in zip(compared, alone, strict=True):
        assert whole[0] == pytest.approx(part[0], rel=0.02)
    on, params = selected.tasks.where[0], jax.tree.map(lambda a: a[0], selected.params)
    mean = fitted_process(params, selected.tasks.x[0][on], selected.tasks.y[0][on].astype(np.float64)).predict(x)
    assert compared.agreement[0] == pytest.approx(kendalltau(mean, y).statistic, abs=1e-3)
    y, mean = ((a - a.mean()) / a.std() for a in (y, mean))

    def density(slope):
        each = []
        for length in UNINFORMED_LENGTHSCALES:
            matrix = 1.0 + matern52(x / (length * np.sqrt(3))) + UNINFORMED_NOISE_VAR * np.eye(15)
            each.append(multivariate_t(shape=matrix, df=4).pdf(y - slope * mean))
        return np.mean(each)

    gain = np.log(np.mean([density(slope) for slope in (0.25, 0.5, 1.0)]) / density(0.0))
    assert compared.gain[0] == pytest.approx(gain, abs=0.05)


def _with_waves(points):
    return points.astype(np.float32), waves(0.0)(points)


def test_stored_rows_are_bounded(monkeypatch):
    monkeypatch.setattr(past_studies, "MAX_STUDIES", 5)
    monkeypatch.setattr(past_studies, "MAX_ROWS", 8)
    points = np.random.default_rng(0).random((11, 3))
    tasks = {str(i): Task(str(i), *_with_waves(points[: 3 if i else None])) for i in range(9)}
    selected = keep_studies(SearchSpace("s", tasks), jax.random.key(0))
    assert (len(selected.names), len(selected.all_names)) == (5, 9)
    assert selected.tasks.where.sum(axis=1).tolist() == [8, 3, 3, 3, 3]
    assert {array.dtype.name for array in selected.arrays().values()} == {"float32", "bool"}


def test_studies_are_saved_but_some_surrogates_have_none(tmp_path):
    random = np.random.default_rng(0)
    studies = {"week 1": trials_at(loss(0.5), random.random((12, 3)))}
    trials = search(loss(0.5), random)
    surrogate = replace(surrogate_of(studies), facts={"versions": versions()})
    surrogate.save(tmp_path)
    loaded = Surrogate.load(tmp_path)
    assert loaded.sources(trials) == surrogate.sources(trials)
    loaded.sources(trials).plot(tmp_path / "sources.svg")
    assert "week 1" in (tmp_path / "sources.svg").read_text()
    assert str(loaded.sources(trials)).splitlines()[1].split()[:2] == ["week", "1"]
    save_fitted(tmp_path, replace(load_fitted(tmp_path), extra_arrays={}))  # as in those of HPO-B
    assert Surrogate.load(tmp_path).studies is None
    assert "holds no past studies" in str(Surrogate.load(tmp_path).sources(trials))
    with pytest.raises(ConfigError, match="no direction"):
        replace(loaded, direction=None).sources(trials)
    with pytest.raises(DataError, match="hyperparameters of the surrogate"):
        loaded.sources([Evaluated({"a": 0.5}, 1.0)])


@pytest.fixture(scope="module")
def hedged():
    random = np.random.default_rng(0)
    studies = {str(i): trials_at(loss(0.5), random.random((8, 3))) for i in range(3)}
    past = past_of(SPACE, studies, direction="minimize")
    return Surrogate.fit(past, method="hedged-prior", settings=SMALL)


@pytest.mark.slow
def test_the_weight_of_the_past(hedged, quiet_optuna):
    """The same in the table and, trial by trial, in the attributes of an Optuna study; low if all is reversed."""
    sampler = DRESampler(surrogate=hedged, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: -sum((t.suggest_float(name, 0, 1) - 0.5) ** 2 for name in "abc"), n_trials=6)
    weights = {trial.number: trial.user_attrs.get("dre:past_weight") for trial in study.trials}
    assert [n for n, weight in weights.items() if weight is None] == [0, 1]  # the start design
    result = hedged.sources(study.trials)
    assert list(result.past_weights) == list(range(7))
    for n in range(2, 6):
        assert weights[n] == pytest.approx(result.past_weights[n], abs=1e-6)
    assert "after 6 trials" in str(result)
    points = np.random.default_rng(1).random((6, 3))
    same, reverse = (hedged.sources(trials_at(f, points)).past_weights[6] for f in (loss(0.5), lambda x: -loss(0.5)(x)))
    assert reverse < 0.5 * same  # after a short training


@pytest.mark.slow
def test_sources_of_an_optimizer(hedged):
    optimizer = Optimizer(surrogate=hedged, seed=0)
    assert [one.weight for one in hedged.sources(optimizer.trials).studies] == pytest.approx([1 / 6] * 3)
    optimizer.tell_failed(optimizer.ask())
    optimizer.tell(optimizer.ask(), 1.0)
    assert list(hedged.sources(optimizer.trials).past_weights) == [0, 1]


@pytest.mark.usefixtures("even_points")
def test_a_misleading_past_gives_one_warning(tmp_path):
    random = np.random.default_rng(0)
    here = loss(random.random(3))
    studies = {str(i): trials_at(here, random.random((20, 3))) for i in range(3)}
    reverse = {name: [one._replace(value=-one.value) for one in study] for name, study in studies.items()}

    def warnings_of(past):
        surrogate, caught = surrogate_of(past), []
        optimizer = Optimizer(surrogate=surrogate, seed=0)
        for number in range(40):
            if number == 30:
                optimizer.save(tmp_path / "study.json")
                optimizer = Optimizer.load(tmp_path / "study.json", surrogate)
            with warnings.catch_warnings(record=True) as record:
                warnings.simplefilter("always")
                trial = optimizer.ask()
            caught += [(number, str(one.message)) for one in record]
            optimizer.tell(trial, here(np.array([[trial["a"], trial["b"], trial["c"]]]))[0])
        (tmp_path / "study.json").unlink()
        return caught

    study = optuna.create_study(sampler=DRESampler(surrogate_of(reverse), seed=0))
    with pytest.warns(DataWarning, match="mislead: .* [0-9]+ trials") as record:
        study.optimize(lambda trial: here(np.array([[trial.suggest_float(n, 0.0, 1.0) for n in "abc"]]))[0], 20)
    assert len(record) == 1
    assert warnings_of(studies) == []
    ((number, message),) = warnings_of(reverse)
    assert number in (8, 12, 18)
    assert message.startswith(f"the past studies mislead: they predict the {number} trials worse than these do")


def test_each_objective_is_warned_of_once():
    random = np.random.default_rng(0)
    here = loss(random.random(3))
    studies = {str(i): trials_at(here, random.random((20, 3))) for i in range(3)}
    reverse = {name: [one._replace(value=-one.value) for one in study] for name, study in studies.items()}
    surrogates = {"same": surrogate_of(studies), "reversed": surrogate_of(reverse), "none": None}
    evaluated = enumerate(search(here, random))
    trials = [Trial(i, e.params, "complete", values=dict.fromkeys(surrogates, e.value)) for i, e in evaluated]
    check, more = PastCheck(), (objectives_of(directions=dict.fromkeys(surrogates, "minimize")), surrogates)
    check.warn_if_misleading(trials[:7], *more)
    with pytest.warns(DataWarning, match="the past studies of 'reversed' mislead") as record:
        check.warn_if_misleading(trials[:12], *more)
    check.warn_if_misleading(trials, *more)
    assert len(record) == 1


def test_a_fit_names_the_study_that_agrees_with_no_other(registries):
    random, shown = np.random.default_rng(0), []
    functions = {"one": loss(0.5), "two": loss(0.45), "three": loss(0.55), "odd": lambda x: -loss(0.5)(x)}
    past = past_of(SPACE, {k: trials_at(f, random.random((20, 3))) for k, f in functions.items()}, direction="minimize")
    surrogate = Surrogate.fit(past, method=TaskMeans(), progress=shown.append)
    assert surrogate.facts["decided"]["past studies"] == "1 of 4 agree with no other: odd"
    assert shown[-1].stage == "past studies: 1 of 4 agree with no other: odd"
