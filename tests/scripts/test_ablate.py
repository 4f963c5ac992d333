"""The ablations: what is run, and the numbers of a table."""

import numpy as np
import pytest
from scipy import stats

from dre_jax.data import Results
from dre_jax.report import compare


@pytest.fixture(scope="module")
def ablations(part):
    """The script's modules by name."""
    return {name: part(f"ablations.{name}") for name in ("studies", "tables")}


def test_every_study_has_variants_that_differ(ablations):
    for name, study in ablations["studies"].STUDIES.items():
        assert len(set(study.variants.values())) == len(study.variants) > 1, name
        assert study.question.endswith("?")
        assert study.papers


def traces(offset, seed):
    """Two spaces of unequal size, three meta-training seeds, two designs."""
    rng, names = np.random.default_rng(seed), [f"{s}:test{d}" for s in range(3) for d in range(2)]

    def task():
        return {name: np.minimum(np.maximum.accumulate(rng.uniform(0, 0.9, 26)) + offset, 1.0) for name in names}

    sizes = {"big": 6, "small": 2}
    return Results({space: {f"t{i}": task() for i in range(n)} for space, n in sizes.items()})


def test_a_line_against_plain_loops(ablations):
    results = {"first": traces(0.0, 1), "second": traces(0.05, 2), "third": traces(0.0, 3)}
    lines = ablations["tables"].lines(compare(results))
    assert [line.name for line in lines] == list(results)
    by_task = {}
    for line in lines:
        spaces = results[line.name].traces.values()
        by_task[line.name] = [
            np.mean([1 - t[25] for t in runs.values()]) for tasks in spaces for runs in tasks.values()
        ]
        for i, trial in enumerate((5, 10, 25)):
            by_seed = [
                np.mean(
                    [
                        np.mean([[1 - runs[f"{s}:test{k}"][trial] for k in range(2)] for runs in tasks.values()])
                        for tasks in spaces
                    ]
                )
                for s in range(3)
            ]
            assert line.regret[i] == pytest.approx(np.mean(by_seed))
            assert line.spread[i] == pytest.approx(np.std(by_seed, ddof=1))
    raw = [stats.wilcoxon(np.subtract(by_task[n], by_task["first"])).pvalue for n in ("second", "third")]
    small, large = sorted(raw)
    adjusted = {small: min(2 * small, 1.0), large: max(min(2 * small, 1.0), large)}
    assert lines[0].p is None
    assert [line.p[2] for line in lines[1:]] == pytest.approx([adjusted[p] for p in raw])


def test_a_section_says_what_was_measured(ablations):
    study = ablations["studies"].STUDIES["ties"]
    text = ablations["tables"].markdown("ties", study, compare({"Breslow": traces(0, 1), "shuffled": traces(0, 2)}))
    assert "48 runs a variant: 8 validation tasks of 2 search spaces, 3 meta-trainings, 2 initial designs." in text
    assert text.count("\n| ") == 4
    assert study.papers in text


def test_test_tasks_are_kept_apart(ablations, part, tmp_path):
    """Nothing is chosen on them."""
    studies = ablations["studies"].STUDIES
    script = part("ablate")
    assert {name for name, study in script.STUDIES.items() if study.split != "validation"} == {"test"}
    assert "test" not in script.OF_VALIDATION
    jobs = script.jobs_of(
        [script.STUDIES[n] for n in ("test", "ties", "schedule")], ["bundled"], 2, ("test0",), tmp_path
    )
    counts = {split: sum(job.split == split for job in jobs) for split in ("test", "validation")}
    # Four search spaces, two seeds; "ties" and "schedule" share their first variant.
    assert counts == {"test": 3 * 4 * 2, "validation": (2 + 3 - 1) * 4 * 2}
    text = ablations["tables"].markdown("test", studies["test"], compare({"a": traces(0, 1), "b": traces(0, 2)}))
    assert "8 test tasks of" in text
