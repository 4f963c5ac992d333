"""The ablations: what is run, what is kept, and the numbers of a table."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from dre_jax.data import Results, add_trace
from dre_jax.model import ModelConfig
from dre_jax.report import compare
from dre_jax.training import FineTuneConfig, MetaTrainConfig


@pytest.fixture(scope="module")
def ablations(part):
    """The script's modules by name."""
    return {name: part(f"ablations.{name}") for name in ("studies", "runner", "tables")}


@pytest.fixture
def tiny(ablations):
    return dataclasses.replace(
        ablations["studies"].BASE,
        model=ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,)),
        training=MetaTrainConfig(steps=3, n_query=8, n_support=2, evaluate_every=3, evaluation_lists=2),
        fine_tuning=FineTuneConfig(epochs=2),
    )


def test_every_study_has_variants_that_differ(ablations):
    for name, study in ablations["studies"].STUDIES.items():
        assert len(set(study.variants.values())) == len(study.variants) > 1, name
        assert study.question.endswith("?")
        assert study.papers


def test_what_depends_on_the_same_is_done_once(ablations, tiny, tmp_path):
    jobs = ablations["runner"].jobs
    other = dataclasses.replace(tiny, fine_tuning=FineTuneConfig(epochs=3))
    trained = dataclasses.replace(tiny, training=dataclasses.replace(tiny.training, steps=4))
    todo = jobs([tiny, other, tiny, trained], ["bundled"], range(2), ("test0",), tmp_path, "validation", 25)
    assert len(todo) == 3 * 4 * 2
    assert len({job.path() for job in todo}) == len(todo)
    # Fine-tuning decides nothing about meta-training.
    assert len({job.checkpoint() for job in todo}) == 2 * 4 * 2
    groups = ablations["runner"]._groups(todo)
    assert sorted(len(group) for group in groups) == [1] * 8 + [2] * 8


@pytest.mark.thorough
@pytest.mark.slow
def test_a_job_is_done_once_and_alike(ablations, tiny, tmp_path):
    run, jobs, collect = (ablations["runner"].__dict__[name] for name in ("run", "jobs", "collect"))
    one, again = (
        jobs([tiny], ["bundled"], [5], ("test0",), tmp_path / name, "validation", 25)[0] for name in ("a", "b")
    )
    path = run(one)
    written = path.stat().st_mtime_ns
    assert run(one) == path
    assert path.stat().st_mtime_ns == written
    assert run(again).read_bytes() == path.read_bytes()
    found = list(collect(tiny, [one]).runs())
    assert {(space, seed) for space, _, seed, _ in found} == {(f"bundled/{one.space}", "5:test0")}
    assert {len(trace) for *_, trace in found} == {26}


def traces(offset, seed):
    """Two spaces of unequal size, three meta-training seeds, two designs."""
    rng = np.random.default_rng(seed)
    results = Results()
    for space, tasks in (("big", 6), ("small", 2)):
        for task in range(tasks):
            for name in (f"{s}:test{d}" for s in range(3) for d in range(2)):
                trace = np.minimum(np.maximum.accumulate(rng.uniform(0, 0.9, 26)) + offset, 1.0)
                results = add_trace(results, space, f"t{task}", name, trace)
    return results


def test_a_line_against_plain_loops(ablations):
    results = {"first": traces(0.0, 1), "second": traces(0.05, 2), "third": traces(0.0, 3)}
    lines = ablations["tables"].lines(compare(results))
    assert [line.name for line in lines] == list(results)
    assert lines[0].p is None
    for line in lines:
        for i, trial in enumerate((5, 10, 25)):
            by_seed = []
            for s in range(3):
                spaces = []
                for datasets in results[line.name].traces.values():
                    spaces.append(np.mean([1 - d[f"{s}:test{k}"][trial] for d in datasets.values() for k in range(2)]))
                by_seed.append(np.mean(spaces))
            assert line.regret[i] == pytest.approx(np.mean(by_seed))
            assert line.spread[i] == pytest.approx(np.std(by_seed, ddof=1))

    def by_task(name):
        tables = results[name].traces.values()
        return [np.mean([1 - t[25] for t in runs.values()]) for datasets in tables for runs in datasets.values()]

    raw = [stats.wilcoxon(np.subtract(by_task(n), by_task("first"))).pvalue for n in ("second", "third")]
    small, large = sorted(raw)
    expected = {small: min(2 * small, 1.0), large: max(min(2 * small, 1.0), large)}
    assert lines[1].p[2] == pytest.approx(expected[raw[0]])
    assert lines[2].p[2] == pytest.approx(expected[raw[1]])


def test_a_section_says_what_was_measured(ablations):
    study = ablations["studies"].STUDIES["ties"]
    text = ablations["tables"].markdown("ties", study, compare({"Breslow": traces(0, 1), "shuffled": traces(0, 2)}))
    assert "48 runs a variant: 8 validation tasks of 2 search spaces, 3 meta-trainings, 2 initial designs." in text
    assert text.count("\n| ") == 4
    assert study.papers in text


def test_test_tasks_are_kept_apart(ablations, part, tiny, tmp_path):
    """Nothing is chosen on them, and their results are files of their own beside the same checkpoints."""
    studies = ablations["studies"].STUDIES
    assert {name for name, study in studies.items() if study.split != "validation"} == {"test"}
    script = part("ablate")
    assert "test" not in script.OF_VALIDATION
    assert set(script.by_setting(["test", "ties"])) == {("test", 25), ("validation", 25)}
    one, other = (
        ablations["runner"].jobs([tiny], ["bundled"], [0], ("test0",), tmp_path, split, 25)[0]
        for split in ("validation", "test")
    )
    assert one.path() != other.path()
    assert one.checkpoint() == other.checkpoint()
    text = ablations["tables"].markdown("test", studies["test"], compare({"a": traces(0, 1), "b": traces(0, 2)}))
    assert "8 test tasks of" in text
