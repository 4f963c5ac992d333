"""Journals with an incomplete last line, read by Optuna itself."""

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from dre_jax.errors import DataError
from dre_jax.tuning.past.journal import WholeLineJournal
from dre_jax.tuning.past.optuna_studies import open_storage
from tests.error_messages import raises_line

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def add_values(storage, values):
    study = optuna.create_study(study_name="a", storage=storage, load_if_exists=True)
    for value in values:
        study.add_trial(optuna.create_trial(value=value))


@pytest.mark.parametrize("n_bytes", [1, 7, 100_000])
def test_a_line_that_was_half_written_is_dropped(n_bytes, tmp_path):
    path = tmp_path / "tune.log"
    add_values(open_storage(str(path), create=True), [1.0, 2.0])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"op_code":4,"worker_id":"'.ljust(n_bytes, b"x")[:n_bytes])
    readers = [open_storage(str(path)) for _ in range(2)]  # they do not see the incomplete line
    assert path.read_bytes() != whole
    add_values(readers[0], [3.0])
    add_values(readers[1], [4.0])
    assert path.read_bytes().startswith(whole)
    study = optuna.load_study(study_name="a", storage=JournalStorage(JournalFileBackend(str(path))))
    assert [trial.value for trial in study.trials] == [1.0, 2.0, 3.0, 4.0]
    assert not list(tmp_path.glob("*.lock"))


def test_a_journal_that_others_have_appended_to_names_the_remedy(tmp_path):
    path = tmp_path / "tune.log"
    add_values(open_storage(str(path), create=True), [1.0])
    whole, half = path.read_bytes(), b'{"op_code":4,"worker'
    path.write_bytes(whole + half)
    journal = JournalFileBackend(str(path))
    journal.append_logs([{"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {"b": 1}}])
    after = path.read_bytes()
    number = len(whole.splitlines()) + 1
    fault = f"line {number} is no entry: delete its half-written start, the {len(half)} characters before the last"
    storage = open_storage(str(path))  # Optuna takes an unreadable last line for one that is being written
    with raises_line(DataError, f"{path} must be a journal of Optuna's studies", fault):
        add_values(storage, [2.0])
    assert path.read_bytes() == after
    journal.append_logs([{"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {"c": 1}}])
    with raises_line(DataError, f"{path} must be a journal of Optuna's studies", fault):
        open_storage(str(path))
    after = path.read_bytes()
    path.write_bytes(whole + after[len(whole) + len(half) :])  # as the remedy says
    assert optuna.load_study(study_name="a", storage=open_storage(str(path))).user_attrs == {"b": 1, "c": 1}


def test_other_text_has_no_remedy(tmp_path):
    path = tmp_path / "text"
    path.write_text("no journal\n{}\n")
    with pytest.raises(DataError, match=r"line 1 is no entry$"):
        list(WholeLineJournal(str(path)).read_logs(0))
    path.write_text("no journal")
    with pytest.raises(DataError, match=r"line 1 is no entry$"):
        add_values(open_storage(str(path)), [1.0])
    assert path.read_text() == "no journal"
