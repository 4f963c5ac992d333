"""Trials of other processes: when they count as lost, and until when a process waits for them."""

import contextlib
import math
import threading
import time

import pytest

from dre_jax import Float, Space
from dre_jax.tuning.command import worker_identity
from dre_jax.tuning.command.runner import run_trials
from dre_jax.tuning.command.shared_study import SharedStudy
from dre_jax.tuning.command.templates import parse
from dre_jax.tuning.command.worker_identity import SignOfLife, new_worker, seconds_between_signs, seconds_until_lost

pytestmark = pytest.mark.usefixtures("even_points")
SPACE = Space({"x": Float(-1.0, 1.0)})
TEMPLATE = parse(["echo", "{x}"], SPACE)


def shared(tmp_path, machine=None, **options):
    """A study in a journal; with a machine, of a process there."""
    study = SharedStudy(str(tmp_path / "study.log"), "study", SPACE, **options)
    study._worker |= {} if machine is None else {"machine": machine, "process": 17, "host": "container"}
    return study


@pytest.mark.parametrize(
    ("silence", "longest", "expected"),
    [(None, None, 600), (None, 1, 30), (None, 10, 30), (None, 50, 150), (None, 1000, 600), (5, 1, 5), (900, 1, 900)],
)
def test_the_silence_by_default_is_that_of_short_trials(silence, longest, expected):
    """Three times the longest, in [30 s, 600 s]; one that was chosen stays."""
    worker = new_worker(silence)
    for seconds in (0.0, 2.0):
        sign = SignOfLife(time.time() - seconds, unchanged=seconds)
        assert seconds_until_lost(worker, sign, longest) == pytest.approx(expected - seconds, abs=1.0)
    assert seconds_until_lost(worker, SignOfLife(math.inf, 9e9), longest) == math.inf  # of another tool
    least = 30 if silence is None else silence
    assert seconds_between_signs(worker) == min(30, least / 4)


def test_clocks_of_machines_may_differ(tmp_path, monkeypatch):
    """A short silence counts from when a sign was first seen, not by the time that it says."""
    here, silent, alive = shared(tmp_path, seed=0), shared(tmp_path, "another"), shared(tmp_path, "a third")
    here.tell(here.ask().number, 1.0)
    now, clock = time.time(), time.monotonic()
    monkeypatch.setattr(time, "time", lambda: now - 120.0)  # of these two machines
    lost, running = silent.ask(), alive.ask()
    monkeypatch.setattr(time, "time", lambda: now)
    again = "trials 1, 2 of other processes run again in 30 s unless the processes give signs of life"
    assert here.awaited == again
    monkeypatch.setattr(time, "monotonic", lambda: clock + 20.0)
    alive.keep_alive()
    again = "trial 1 of process 17 on container runs again in 10 s unless the process gives a sign of life"
    assert here.awaited == again
    monkeypatch.setattr(time, "monotonic", lambda: clock + 40.0)
    assert here.awaited == ""
    assert here.ask().params == lost.params
    assert [trial.state for trial in here.trials] == ["complete", "failed", "running", "running"]
    assert running.params == here.trials[2].params


@pytest.mark.parametrize("is_alive", [False, True])
def test_a_run_ends_once_it_is_known_who_lives(tmp_path, monkeypatch, is_alive):
    monkeypatch.setattr(worker_identity, "LEAST_SILENCE", 1.0)
    elsewhere, here = shared(tmp_path, "another", seed=0), shared(tmp_path, seed=1)
    here.tell(here.ask().number, 1.0)
    trial, ended = elsewhere.ask(), threading.Event()

    def give_signs():
        while is_alive and not ended.wait(0.05):
            elsewhere.keep_alive()

    assert here.awaited.startswith("trial 1 of process 17 on container runs again in ")
    thread = threading.Thread(target=give_signs)
    thread.start()
    list(run_trials(here, TEMPLATE, trials=3))
    ended.set()
    thread.join()
    states, repeated = [one.state for one in here.trials], [one for one in here.trials if one.params == trial.params]
    assert states == (["complete", "running", "complete"] if is_alive else ["complete", "failed", *["complete"] * 2])
    assert len(repeated) == (1 if is_alive else 2)


def test_an_interrupted_run_gives_its_trials_back(tmp_path):
    """Also the one that is being suggested; another process need not wait, wherever it runs."""
    elsewhere, here = shared(tmp_path, "another", seed=0), shared(tmp_path, seed=1)
    waiting = parse(["sh", "-c", "sleep 100 # {x}"], SPACE)
    with contextlib.closing(run_trials(elsewhere, waiting, trials=9, workers=2)) as progress:
        for one in progress:
            if one.running:
                break
    started = elsewhere.trials
    assert len(started) in (1, 2)
    assert (here.awaited, here.n_started) == ("", 0)
    list(run_trials(here, TEMPLATE, trials=len(started)))
    assert [one.state for one in here.trials] == ["failed"] * len(started) + ["complete"] * len(started)
    assert sorted(one["x"] for one in started) == sorted(one["x"] for one in here.trials[len(started) :])
    elsewhere.give_back()  # nothing is left


def test_nobody_waits_for_a_process_that_is_seen_to_live(tmp_path):
    elsewhere, here = (shared(tmp_path, seed=seed) for seed in range(2))
    elsewhere.ask()
    list(run_trials(here, TEMPLATE, trials=2))
    assert (here.awaited, [trial.state for trial in here.trials]) == ("", ["running", "complete"])


def test_nor_when_the_time_is_over(tmp_path):
    shared(tmp_path, "another").ask()
    progress = list(run_trials(shared(tmp_path, seed=0), TEMPLATE, trials=1, total_timeout=0.3))
    assert progress[-1].awaited == ""
