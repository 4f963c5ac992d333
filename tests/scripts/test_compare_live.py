"""Live functions against their published optima, pasts, and a small comparison."""

import numpy as np
import pytest

REGIONS = {"sub-region": (0.1, 0.5), "narrow": (0.25, 0.75)}
ABSENT = {"fewer": {"x0": 5}, "half-fewer": {"x0": 3}}


@pytest.fixture(scope="module")
def script(part):
    return part("compare_live")


@pytest.fixture(scope="module")
def functions(part):
    return part("live.functions")


@pytest.mark.parametrize(
    ("name", "at", "least"),
    [
        ("branin", [np.pi, 2.275], 0.397887),
        ("hartmann", [0.114614, 0.555649, 0.852547], -3.86278),
        ("hartmann", [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573], -3.32237),
        ("ackley", [0.0] * 4, 0.0),
        ("rosenbrock", [1.0] * 4, 0.0),
        ("levy", [1.0] * 5, 0.0),
        ("griewank", [0.0] * 3, 0.0),
        ("styblinski_tang", [-2.903534] * 3, 3 * -39.16617),
        ("bowl", [0.0] * 3, 0.0),
        ("rastrigin", [0.0] * 3, -30.0),
        ("schwefel", [420.9687] * 3, 3 * -418.9829),
        ("alpine", [0.0] * 3, 0.0),
    ],
)
def test_functions_have_their_published_optima(name, at, least, functions):
    function, rng = getattr(functions, name), np.random.default_rng(0)
    at = np.array([at])
    assert function(at)[0] == pytest.approx(least, abs=1e-4)
    assert (function(at + 0.01 * rng.normal(size=(50, at.shape[1]))) > least - 1e-4).all()


def test_families_are_chosen_on_or_reported(functions):
    groups = (functions.CHOICE, functions.ROUGH, functions.REPORT)
    assert sorted(name for group in groups for name in group) == sorted(functions.FAMILIES)


def test_the_optimum_of_a_task_is_its_formulas(functions):
    """Which searches from many points miss in twenty columns, and among many local optima."""
    least = {"ackley": 0.0, "levy": 0.0, "griewank": 0.0, "rosenbrock": 0.0, "branin": 0.397887, "hartmann": -3.32237}
    for name in ("ackley-5", "ackley-20", "levy-6", "griewank-5", "rosenbrock-4", "branin", "hartmann-6"):
        family = functions.FAMILIES[name]
        task = family.draw(np.random.default_rng(1), past=True)
        points = np.random.default_rng(0).random((functions._SPREAD_POINTS, family.n_columns))
        shift = np.random.default_rng(1).uniform(-family.shift, family.shift, family.n_columns)
        low, high = np.asarray(family.low), np.asarray(family.high)
        values = family.formula(low + (high - low) * (points + shift))
        optimum = least[name.split("-")[0]]
        expected = (values - optimum) / (np.median(values) - optimum)
        np.testing.assert_allclose((task.loss(points) - task.least) / task.spread, expected, rtol=1e-4, atol=1e-4)


def test_reversed_tasks_are_the_other_way_round(functions):
    family = functions.FAMILIES["branin"]
    rng = np.random.default_rng
    plain, turned = (family.draw(rng(3), reverse=reverse, past=True) for reverse in (False, True))
    params = [family.space.params(point) for point in rng(4).random((50, 2))]
    assert np.corrcoef([plain.exact(p) for p in params], [turned.exact(p) for p in params])[0, 1] < -0.999


def test_pasts_have_the_studies_that_are_asked_for(part, functions):
    pasts, family = part("live.pasts"), functions.FAMILIES["bowl-3"]
    kinds = "sub-region", "irrelevant", "reversed", "fewer", "half-fewer", "narrow"
    for name in ("random 3x10", "tpe 1x20", *(f"{kind} 5x20" for kind in kinds)):
        setting = pasts.settings()[name]
        past = setting.draw(family, np.random.default_rng(0))
        assert (len(past), {task.n_rows for task in past.tasks.values()}) == (setting.studies, {setting.trials})
        assert {name: len(tasks) for name, tasks in past.absent.items()} == ABSENT.get(setting.kind, {})
        low, high = REGIONS.get(setting.kind, (0.0, 1.0))
        assert all(low <= task.X[:, 1:3].min() <= task.X[:, 1:3].max() <= high for task in past.tasks.values())


def test_a_comparison_resumes_and_counts_families_alike(script, tmp_path, capsys):
    out = tmp_path / "live.jsonl"
    arguments = ["--tuners", "random", "--families", "branin", "bowl-3", "--replicates", "1", "--tasks", "2"]
    arguments += ["--trials", "5", "--workers", "1", "--out", str(out)]
    script.main(arguments)
    printed = capsys.readouterr().out
    assert "2 families, 4 tasks" in printed
    result = script.read_studies(out, script.Study)
    assert len(result) == 4
    by_family = [np.mean([r[4] for s, r in result.items() if s.family == name]) for name in ("branin", "bowl-3")]
    assert f"| {np.mean(by_family):.4f} ± " in printed
    script.main(arguments)
    assert len(out.read_text().splitlines()) == 4


def test_who_is_behind_by_more_than_the_margin_is_marked(script, part):
    """By hand: differences of tasks, the error within families, the bound of the worst rival's better."""
    tables, rng = part("live.tables"), np.random.default_rng(0)
    regrets = {}
    for tuner, level in (("recommended", 0.30), ("good", 0.25), ("bad", 0.9)):
        for family, replicate, task in np.ndindex(2, 2, 2):
            past = "none" if tuner == "good" else "random 1x20"
            values = level + 0.02 * rng.random(10)
            regrets[script.Study(tuner, f"f{family}", past, replicate, task)] = values.tolist()
    at = lambda tuner, t: np.array([r[t] for s, r in sorted(regrets.items()) if s.tuner == tuner])  # noqa: E731
    pairs = (at("recommended", 9) - at("good", 9)).reshape(2, 4)
    bound = pairs.mean() + 1.645 * np.sqrt((pairs.var(axis=1, ddof=1) / 4).sum()) / 2
    result = tables.non_inferiority(regrets, [10])
    assert f"| random 1x20 | {bound:+.3f}* | +0." in result
    assert result.endswith("|")
    assert result.count("*") == 2  # the heading's, and regret's: a fifth is no factor of two
