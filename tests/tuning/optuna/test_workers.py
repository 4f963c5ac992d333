"""Two processes of one seed on one journal file."""

import multiprocessing
import time

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from dre_jax.tuning import Int, Space, Surrogate
from dre_jax.tuning.optuna import DRESampler

SPACE = Space({"x": Int(0, 3), "y": Int(0, 3)})
TRIALS = 6


@pytest.fixture
def surrogate():
    """That tries twelve of the sixteen configurations first: without a look at each other, workers suggest the same."""
    start = tuple({"x": x, "y": y} for x in range(3) for y in range(4))
    return Surrogate(SPACE, "none", None, None, start)


def work(path, sampler, begin):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name="one", storage=JournalStorage(JournalFileBackend(path)), sampler=sampler)
    begin.wait(60)

    def objective(trial):
        x = trial.suggest_int("x", 0, 3)
        time.sleep(0.01)
        return x + trial.suggest_int("y", 0, 3)

    study.optimize(objective, n_trials=TRIALS)


@pytest.mark.thorough
@pytest.mark.multiprocess
def test_two_processes_of_one_seed_suggest_no_configuration_twice(surrogate, quiet_optuna, tmp_path):
    path = str(tmp_path / "journal.log")
    study = optuna.create_study(study_name="one", storage=JournalStorage(JournalFileBackend(path)))
    context = multiprocessing.get_context("spawn")
    begin = context.Barrier(2)
    workers = [
        context.Process(target=work, args=(path, DRESampler(surrogate=surrogate, seed=0), begin)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    found = [(trial.params["x"], trial.params["y"]) for trial in study.trials]
    assert len(found) == 2 * TRIALS == len(set(found))
