"""Weights & Biases without a network: runs are files, which `wandb sync` sends later."""

import json
from itertools import count

import pytest

from dre_jax.tuning.trackers import WandbTracker
from tests.processes import wait_until

wandb = pytest.importorskip("wandb")
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.thorough]
BLOCK = 32768


def records_of(file):
    """The records of a run's file, which has the format of LevelDB's logs: parts in blocks, with a head of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, record = file.read_bytes(), 7, b""
    while at + 7 <= len(content):
        if BLOCK - at % BLOCK < 7:  # the rest of a block has no room for a head
            at += BLOCK - at % BLOCK
            continue
        length, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(record)
            record = b""


def trial_of(file):
    """What a run has of a trial, as `check_trials` takes it."""
    params, summary, curve, status = {}, {}, {}, None
    # The last records are written after `finish` returns.
    wait_until(lambda: any(record.HasField("exit") for record in records_of(file)), seconds=10)
    for record in records_of(file):
        for item in (*record.run.config.update, *record.config.update):
            if item.key != "_wandb":
                params[item.key] = json.loads(item.value_json)
        summary |= {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.summary.update}
        row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
        curve |= {row["_step"]: row["report"]} if "report" in row else {}
        if record.HasField("exit"):
            status = record.exit.exit_code
    params = {name: str(value) for name, value in params.items()}
    return int(summary["trial"]), params, summary.get("value"), status != 0, curve


def runs_of(folder):
    """The files of trials, and those of figures."""
    files = sorted(folder.glob("wandb/offline-run-*/*.wandb"))
    return [[file for file in files if ("-trial-" in file.name) == is_trial] for is_trial in (True, False)]


def test_a_resumed_study_continues_in_its_group(optimizer, run_trials, resumed, check_trials, tmp_path, monkeypatch):
    tracker = WandbTracker("wine", folder=tmp_path, mode="offline")
    run_trials(optimizer, 4, tracker)  # killed: it does not finish
    optimizer = resumed(optimizer)
    with WandbTracker("wine", folder=tmp_path, mode="offline") as tracker:
        run_trials(optimizer, 3, tracker)
    trials, figures = runs_of(tmp_path)
    check_trials(optimizer, list(map(trial_of, trials)))
    (figure,) = figures
    assert list(figure.parent.glob("files/media/images/History*.png"))
    groups = {record.run.run_group for file in (*trials, figure) for record in records_of(file) if record.run.run_id}
    assert groups == {f"study {optimizer.study_id[:6]}"}


def test_the_example_of_the_page(run_example, tmp_path):
    optimizer = run_example("Weights & Biases")
    trials, (figures,) = runs_of(tmp_path)
    assert len(trials) == len(optimizer.trials) == 16
    assert len(list(figures.parent.glob("files/media/images/*.png"))) > 3


def test_an_active_run_stays(optimizer, run_trials, tmp_path):
    own = wandb.init(project="own", dir=str(tmp_path), mode="offline")
    with WandbTracker("wine", folder=tmp_path, mode="offline") as tracker:
        run_trials(optimizer, 1, tracker)
    assert wandb.run is own
    own.finish()


def test_a_server_that_is_away_ends_no_search(optimizer, run_trials, check_trials, tmp_path, monkeypatch):
    tracker = WandbTracker("wine", folder=tmp_path, mode="offline")
    run_trials(optimizer, 1, tracker)
    init, calls = wandb.init, count()
    faults = lambda **options: init(**options) if next(calls) else 1 / 0  # noqa: E731
    monkeypatch.setattr(tracker._wandb, "init", faults)
    with pytest.warns(UserWarning, match="trial 1 is not tracked yet: ZeroDivisionError"):
        run_trials(optimizer, 1, tracker)
    run_trials(optimizer, 1, tracker)
    trials, _ = runs_of(tmp_path)
    check_trials(optimizer, list(map(trial_of, trials)))
