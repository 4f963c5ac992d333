"""The expectation of random search, the folders with their pasts, and the one-sided test."""

import itertools

import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.data.hpob import write_dataset


def space(name: str, n_train: int, n_validation: int, n_test: int = 1, columns: int = 2) -> SearchSpace:
    rng = np.random.default_rng(len(name))

    def tasks(split: str, n: int) -> dict[str, Task]:
        names = [f"{name}-{split}-{i}" for i in range(n)]
        return {task: Task(task, rng.random((30, columns)).astype(np.float32), rng.random(30)) for task in names}

    return SearchSpace(name, tasks("train", n_train), tasks("validation", n_validation), tasks("test", n_test))


def test_the_expectation_is_the_mean_over_all_orders(part):
    """Rows, of which two are equal, in every order; more trials than rows are left."""
    response, design = np.array([0.1, 0.7, 0.7, 0.0, 1.0, 0.4]), np.array([3, 5])
    orders = itertools.permutations([0, 1, 2, 4])
    best = [np.maximum.accumulate([0.4, *response[list(order)]]) for order in orders]
    expected = np.append(np.mean(best, axis=0), 1.0)
    np.testing.assert_allclose(part("compare_random").expected_random(response, design, 5), expected, rtol=1e-12)


def test_each_task_has_the_past_that_its_split_allows(part):
    script = part("compare_random")
    [many] = script.parts_of(space("many", 8, 2))
    assert (len(many.train), [*many.test]) == (8, ["many-validation-0", "many-validation-1"])
    few = list(script.parts_of(space("few", 2, 1)))
    assert sorted(name for each in few for name in each.test) == ["few-train-0", "few-train-1", "few-validation-0"]
    assert all(len(each.train) == 2 and not each.train.keys() & each.test.keys() for each in few)
    [alone] = script.parts_of(space("alone", 0, 0))
    assert (alone.train, [*alone.test]) == ({}, ["alone-test-0"])


def test_pasts_are_reversed_or_of_another_space(part):
    script = part("compare_random")
    many, other = space("many", 12, 1), space("other", 1, 0, columns=3)
    [searched] = script.parts_of(many)
    useful, unrelated, turned = (script.with_past(searched, past, other, 20) for past in script.PASTS)
    assert useful.train.keys() == turned.train.keys()
    assert len(useful.train) == 10
    for name, task in useful.train.items():
        np.testing.assert_array_equal(turned.train[name].y, -task.y)
    assert [(name, task.n_columns) for name, task in unrelated.train.items()] == [("other other-train-0", 2)]
    [task] = useful.test.values()
    assert task.n_rows == 20
    assert all(rows.max() < 20 for rows in useful.designs[task.name].values())


def test_behind_is_one_sided_and_corrected(part):
    """Regrets of four tasks from three designs: clearly ahead, clearly behind, and behind within the error."""
    script, rng = part("compare_random"), np.random.default_rng(0)

    def gaps(family: str, mean: float) -> list:
        noise = rng.normal(0.0, 0.1, (4, 3, 1))
        noise -= noise.mean(axis=1, keepdims=True)
        return [script.Gap("m", family, str(i), mean + each, 0.0 * each) for i, each in enumerate(noise)]

    groups = {"ahead": gaps("ahead", -0.5), "behind": gaps("behind", 0.5), "level": gaps("level", 0.03)}
    marks = script.behind_random([gap for group in groups.values() for gap in group], [0])
    assert {family: marks["m", family, 0] for family in groups} == {"ahead": False, "behind": True, "level": False}
    mean, error, freedom = script.mean_and_error(groups["level"], 0)
    values = np.stack([gap.regrets[:, 0] for gap in groups["level"]])
    expected = np.sqrt(sum(row.var(ddof=1) / 3 for row in values)) / 4
    np.testing.assert_allclose([mean, error, freedom], [0.03, expected, 8])
    assert "| m | behind | 4 | +0.500 ± " in script.table(groups["behind"], [0])


def test_going_alone_is_the_other_of_each_pair(part):
    """With its past, a search is behind on one of two tasks after 40 trials, and catches up there after 45."""
    script = part("compare_random")
    falling = np.linspace(1.0, 0.0, 51)[None].repeat(2, axis=0)
    late = np.where(np.arange(51) < 45, np.maximum(falling, 0.4), 0.1)
    traces = {"gp-mixture": (falling, falling), "m, own past": (falling - 0.02, late)}
    gaps = [
        script.Gap(variant, "f", task, regret - 0.5, np.full_like(regret, 0.5))
        for variant, tasks in traces.items()
        for task, regret in zip("ab", tasks, strict=True)
    ]
    gaps.append(gaps[0]._replace(family="another", regrets=gaps[0].regrets - 0.9))  # with a task of the same name
    lines = script.alone_table(gaps, [20, 40]).splitlines()
    assert "| m, own past | 2 | -0.010 ± 0.000 | +0.090 ± 0.000 | 1 | 0.200 | 0 | 45 | 45 |" in lines


@pytest.mark.slow
def test_random_search_is_not_behind_itself(part, tmp_path, capsys):
    """Twenty tasks; a second call computes nothing, as its files are there."""
    script = part("compare_random")
    write_dataset(tmp_path / "data", [space("some", 8, 20)])
    arguments = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--methods", "random"]
    arguments += ["--at", "3", "8", "--workers", "1", "--together", "so"]
    assert script.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "| random | so | 20 |" in printed
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert script.main(arguments) == 0
    assert capsys.readouterr().out == printed
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.json")}.items() <= before.items()


def test_the_gap_of_a_live_function_is_to_random_draws(part):
    """By simulation: three draws of a sample of five after a design, and a best value beyond the sample."""
    sample, values = (
        np.array([0.1, 0.9, 0.3, 0.5, 0.7]),
        np.array([[0.2, 0.0, 0.4, 1.1, 0.6], [0.6, 0.3, 0.3, 0.2, 0.8]]),
    )
    draws = np.array(list(itertools.permutations(sample, 3)))
    for regrets, row in zip(np.subtract(*part("compare_random").live_regrets(sample, values)), values, strict=True):
        best = np.maximum.accumulate(np.column_stack([np.full(len(draws), row[:2].max()), draws]), axis=1).mean(axis=0)
        trace = [row[:2].max(), *(row[:n].max() for n in (3, 4, 5))]
        np.testing.assert_allclose(regrets, (best - trace) / (0.9 - 0.5), rtol=1e-9, atol=1e-12)


def test_a_table_of_a_function_has_its_losses_at_its_rows(part):
    """The columns of a box are its coordinates; a choice has a column for each of its levels."""
    script = part("compare_random")
    family = script.bench.find_family("branin")
    table = script.function_table(family, 2)
    assert [*table.test] == ["0", "1"]
    for i, task in enumerate(table.test.values()):
        losses = family.losses(family.draw(script.bench.random("branin", "task", i)), task.X.astype(np.float64))
        np.testing.assert_allclose(task.y, -losses, rtol=1e-4, atol=1e-4)  # rows are in float32
        assert task.X.shape == (script.N_TABLE, 2)
    mixed = script.function_table(script.bench.find_family("mixed-5"), 1).test["0"].X
    assert mixed.shape[1] > 5
    assert (mixed.min(), mixed.max()) == (0.0, 1.0)


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_functions_are_searched_by_methods_on_the_host(part, tmp_path, capsys):
    arguments = ["--functions", "branin", "--methods", "tpe", "--at", "3", "--live-tasks", "2", "--workers", "1"]
    assert part("compare_random").main([*arguments, "--out", str(tmp_path)]) == 0
    assert "| tpe | branin | 2 |" in capsys.readouterr().out


@pytest.mark.slow
def test_functions_are_searched_by_methods_that_do_not_learn(part, tmp_path, capsys):
    """Random search is not behind; what stays at the regret of its design, and a little above it, is."""
    script = part("compare_random")
    arguments = ["--functions", "branin", "--methods", "random", "hedged-prior", "--at", "4", "--live-tasks", "3"]
    assert script.main([*arguments, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| random | branin | 3 |" in printed
    assert "hedged-prior" not in printed
    gaps = list(script.function_gaps(script.bench.find_family("branin"), "random", 3, 4, tmp_path / "functions"))
    worst = [gap._replace(regrets=gap.expected[:, :1] - gap.expected + 0.3) for gap in gaps]
    assert script.behind_random(worst, [4])["random", "branin", 4]
