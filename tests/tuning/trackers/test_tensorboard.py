"""TensorBoard's event files, read as records, and by TensorBoard where it is installed."""

import struct

import pytest
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

from dre_jax.tuning import Optimizer
from dre_jax.tuning.trackers import TensorBoardTracker

HPARAMS = "_hparams_/session_"


def values_of(folder):
    """The values of the event files of a folder: TFRecords, a length with its checksum, and data with theirs."""
    for file in folder.glob("events.out.tfevents.*"):
        content = file.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            yield from ((event.step, value) for value in event.summary.value)
            content = content[16 + length :]


def trials_of(folder):
    """What the folders of trials have, as `check_trials` takes it."""
    for path in folder.glob("trial-*"):
        number, values = int(path.name.removeprefix("trial-")), list(values_of(path))
        scalars = [(value.tag, step, value.simple_value) for step, value in values]
        infos = {value.tag: HParamsPluginData.FromString(value.metadata.plugin_data.content) for _, value in values}
        params = infos[f"{HPARAMS}start_info"].session_start_info.hparams
        params = {name: getattr(value, value.WhichOneof("kind")) for name, value in params.items()}
        params = {name: str(int(x) if name.startswith("no") and x == 1 else x) for name, x in params.items()}
        value = next((value for tag, step, value in scalars if (tag, step) == ("value", number)), None)
        is_failed = infos[f"{HPARAMS}end_info"].session_end_info.status == 2  # STATUS_FAILURE
        yield number, params, value, is_failed, {step: value for tag, step, value in scalars if tag == "report"}


def test_a_resumed_study_continues_in_its_folder(optimizer, run_trials, resumed, check_trials, tmp_path):
    run_trials(optimizer, 4, TensorBoardTracker(tmp_path))  # killed: it does not finish
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    (folder / "part-4").mkdir()
    (folder / "part-4" / "events.out.tfevents.1.killed").write_bytes(b"half")
    optimizer = resumed(optimizer)
    with TensorBoardTracker(tmp_path) as tracker:
        run_trials(optimizer, 3, tracker)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [folder.name]
    check_trials(optimizer, list(trials_of(folder)))
    ((step, figure),) = values_of(folder)
    assert (step, figure.tag) == (7, "History")
    assert figure.image.encoded_image_string.startswith(b"\x89PNG")
    run_trials(Optimizer(optimizer.space, seed=0), 1, TensorBoardTracker(tmp_path))
    assert len(list(tmp_path.glob("*/trial-0"))) == 2, "another study of the same seed has a folder of its own"


def test_a_kill_at_any_moment(optimizer, run_trials, check_trials, left_by_kills, tmp_path):
    run_trials(optimizer, 2, lambda *_: None)
    (tmp_path / "runs").mkdir()
    copies = left_by_kills(tmp_path / "runs", lambda: TensorBoardTracker(tmp_path / "runs").track(optimizer))
    assert len(copies) > 4
    for copy in copies:
        TensorBoardTracker(copy).track(optimizer)
        check_trials(optimizer, list(trials_of(copy / optimizer.study_id)))


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
def test_tensorboard_shows_the_hyperparameters(optimizer, run_trials, tmp_path):
    multiplexer = pytest.importorskip("tensorboard.backend.event_processing.plugin_event_multiplexer")
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.context import RequestContext
    from tensorboard.plugins.base_plugin import TBContext
    from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups

    with TensorBoardTracker(tmp_path) as tracker:
        run_trials(optimizer, 6, tracker)
    events = multiplexer.EventMultiplexer().AddRunsFromDirectory(str(tmp_path))
    events.Reload()
    provider = MultiplexerDataProvider(events, str(tmp_path))
    context = backend_context.Context(TBContext(logdir=str(tmp_path), multiplexer=events, data_provider=provider))
    request = api_pb2.GetExperimentRequest()
    experiment = get_experiment.Handler(RequestContext(), context, "", request).run()
    assert {info.name for info in experiment.hparam_infos} == set(optimizer.space)
    statuses = [api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE]
    request = api_pb2.ListSessionGroupsRequest(allowed_statuses=statuses, start_index=0, slice_size=100)
    groups = list_session_groups.Handler(RequestContext(), context, "", request).run().session_groups
    by_name = {group.name: group for group in groups}
    assert set(by_name) == {f"trial {trial.number}" for trial in optimizer.trials}
    for trial in optimizer.trials:
        group = by_name[f"trial {trial.number}"]
        assert (group.sessions[0].status == api_pb2.STATUS_FAILURE) == (trial.state == "failed")
        values = {one.name.tag: one.value for one in group.metric_values}
        assert values.get("value") == (None if trial.value is None else pytest.approx(trial.value))
