"""Pasts of live functions, families of many hyperparameters, and a small comparison."""

import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.functions.families import FAMILIES


def test_pasts_have_the_studies_of_their_names(part):
    pasts, family = part("live.pasts"), FAMILIES["bowl-3"]
    for kind, n, trials in (("random", 3, 10), ("tpe", 1, 20), ("sub-region", 5, 20), ("irrelevant", 5, 20)):
        past = pasts.draw_past(f"{kind} {n}x{trials}", family, np.random.default_rng(0))
        assert [task.n_rows for task in past.tasks.values()] == [trials] * n
        rows = np.vstack([task.X for task in past.tasks.values()])
        low, high = (0.1, 0.5) if kind == "sub-region" else (0.0, 1.0)
        assert low <= rows.min() <= rows.max() <= high
    rng = np.random.default_rng
    plain, turned = (pasts.draw_past(f"{kind} 1x20", family, rng(0)).tasks for kind in ("random", "reversed"))
    assert np.corrcoef(plain["study 0"].y, turned["study 0"].y)[0, 1] < -0.999
    for name in ("turned 1x20", "random 20"):
        with pytest.raises(ConfigError, match=f"then STUDIESxTRIALS, but got '{name}'"):
            pasts.draw_past(name, family, rng(0))


@pytest.mark.thorough
def test_a_comparison_resumes_and_counts_families_alike(part, tmp_path, capsys):
    script, out = part("compare_live"), tmp_path / "live.jsonl"
    arguments = ["--tuners", "random", "--families", "branin", "bowl-3", "--replicates", "1", "--tasks", "2"]
    arguments += ["--trials", "5", "--workers", "1", "--out", str(out)]
    script.main(arguments)
    printed = capsys.readouterr().out
    assert "2 families, 4 tasks" in printed
    result = script.read_studies(out)
    assert len(result) == 4
    by_family = [np.mean([r[4] for s, r in result.items() if s.family == name]) for name in ("branin", "bowl-3")]
    assert f"| {np.mean(by_family):.4f} ± " in printed
    script.main(arguments)
    assert len(out.read_text().splitlines()) == 4


@pytest.mark.thorough
def test_searches_in_one_program_have_the_regrets_of_single_optimizers(part):
    contestants, family = part("live.contestants"), FAMILIES["mixed-5"]
    tasks = {n: part("live.functions").draw_task(family, np.random.default_rng(n)) for n in range(2)}
    together = contestants.run_group("gp-mixture", family, tasks, 12, 3, None)
    apart = [contestants.run("gp-mixture", task, 12, 3, n, None) for n, task in tasks.items()]
    assert np.ptp(together) > 0.0
    np.testing.assert_allclose(together, apart, rtol=0.0, atol=1e-7)


def test_differences_beyond_the_margin_are_marked(part):
    """By hand: differences of tasks, the error within families, the bound of the worst rival's better."""
    script, tables, rng = part("compare_live"), part("live.tables"), np.random.default_rng(0)
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
    assert f"`bad` | {np.median(at('bad', 9)):.4f} |" in tables.medians(regrets, [10])


@pytest.mark.parametrize(
    "name",
    [
        *("wide-additive-30", "wide-decay-24", "wide-pairs-19"),
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("wide-sparse-60", "wide-pairs-60")),
    ],
)
def test_a_wide_task_has_a_known_optimum(name, part):
    """One pass over the hyperparameters finds it, where none depends on another one."""
    family = part("live.wide").WIDE_FAMILIES[name]
    task = family.draw(np.random.default_rng(2))
    space, rng = family.space, np.random.default_rng(1)
    losses = [task.exact(space.params(point)) for point in rng.random((512, len(space)))]
    assert min(losses) > 0.0
    assert np.median(losses) == pytest.approx(1.0, abs=0.1)
    params = space.params(np.full(len(space), 0.5))
    for key, parameter in space.items():
        values = getattr(parameter, "choices", np.linspace(0, 1, 201) if key[0] == "x" else range(16))
        params = min((params | {key: value} for value in values), key=task.exact)
    assert 0.0 <= task.exact(params) < (0.7 if family.pairs else 0.05)
