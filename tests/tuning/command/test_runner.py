"""Commands as trials: what they print, how they are ended, and the study file beside them."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import time

import pytest

from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.tuning import Bool, Float, Optimizer, Space
from dre_jax.tuning.command import commands as commands_module
from dre_jax.tuning.command.commands import Command
from dre_jax.tuning.command.printed_value import PrintedNames
from dre_jax.tuning.command.process_guard import ProcessGroupGuard
from dre_jax.tuning.command.runner import run_trials, study_in_file
from dre_jax.tuning.command.templates import parse
from tests.processes import alive_in, wait_until

SPACE = Space({"x": Float(-1.0, 1.0)})
WAIT = 60  # a hard limit on a busy machine, not a measurement


def shell(text, **options):
    command = Command(("sh", "-c", text), **options)
    wait_until(lambda: command.poll() or command.outcome)
    return command.outcome


def pid_in(path):
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


class TestCommand:
    def test_values(self):
        assert shell("echo 0.5")[:2] == (0.5, "")
        assert shell("echo loss: 0.5; echo 7 >&2")[:2] == (0.5, "")
        assert shell('echo \'{"f1": 0.25, "n": 3}\'', names=PrintedNames(["f1"]))[:2] == (0.25, "")
        assert shell("echo -inf").value == -math.inf
        assert shell("seq 100000; echo 0.5").value == 0.5  # the last of more than is looked at

    def test_failures(self):
        assert shell("echo 0.5; exit 3")[:2] == (None, "exit status 3")
        assert shell("echo a >&2; echo 'no such file' >&2; exit 1")[:2] == (None, "exit status 1: no such file")
        assert shell("kill -9 $$")[:2] == (None, "ended by signal 9")
        assert shell("echo nan")[:2] == (None, "it printed NaN")
        assert shell("echo bye").reason.startswith("it printed neither a number alone on a line")
        assert shell(r"printf '\377\376\n'; cat; echo bye").value is None  # and there is no input to wait for

    def test_logs_hold_the_output(self, tmp_path):
        for word in ("first", "second"):
            assert shell(f"echo {word}; echo 0.5; echo oh >&2", logs=tmp_path / "7").value == 0.5
        assert (tmp_path / "7.out").read_text() == "second\n0.5\n"
        assert (tmp_path / "7.err").read_text() == "oh\n"
        with pytest.raises(DataError, match=r"none/7\.out cannot be written: No such file"):
            Command(["true"], logs=tmp_path / "none" / "7")

    @pytest.mark.parametrize("arguments", [["/no/such/program"], ["/"], ["a\0b"], ["echo", "x" * 10_000_000]])
    def test_commands_that_cannot_start(self, arguments):
        with pytest.raises(ConfigError, match="must start a program that exists"):
            Command(arguments)

    def test_time_out_ends_the_whole_group(self, tmp_path, monkeypatch):
        monkeypatch.setattr(commands_module, "GRACE", 0.2)
        leader = tmp_path / "leader"
        # Neither listens to a request to end; the child outlives its parent's first signal.
        text = f"trap '' TERM; (trap '' TERM; sleep 100) & echo $$ > {leader}; echo 0.5; sleep 100"
        result = shell(text, timeout=0.3)
        assert result[:2] == (None, "it took longer than 0.3 s")
        assert 0.5 <= result.seconds < 30
        wait_until(lambda: not alive_in(pid_in(leader)))

    def test_a_trial_that_ends_well_after_the_time_out_has_failed(self):
        result = shell("trap 'echo 0.5; exit 0' TERM; while :; do sleep 0.01; done", timeout=0.2)
        assert result[:2] == (None, "it took longer than 0.2 s")

    def test_a_child_that_continues_does_not_delay_the_outcome(self):
        """A child that inherits the output and goes on."""
        command = Command(["sh", "-c", "sleep 100 & echo 0.5"])
        wait_until(lambda: command.poll() or command.outcome, seconds=WAIT)
        assert command.outcome.value == 0.5
        os.killpg(command._process.pid, signal.SIGKILL)


@pytest.fixture
def optimizer(study):
    with study_in_file(study, SPACE) as opened:
        yield opened


def run(study, command, *, space=SPACE, trials=4, **options):
    """Runs a shell command a trial; the study."""
    with study_in_file(study, space) as optimizer:
        for _ in run_trials(optimizer, parse(["sh", "-c", command], space), trials=trials, **options):
            pass
        return optimizer


class TestProcessGroupGuard:
    @pytest.fixture
    def groups(self, tmp_path):
        """A process that ends when asked, one that does not and has a child, and one that nobody watches."""
        folders = []
        for i, text in enumerate(("sleep 100", "trap '' TERM; sleep 100 & sleep 100; sleep 100", "sleep 100")):
            shell = ["sh", "-c", f"echo $$ > {tmp_path / str(i)}; {text}"]
            folders.append(subprocess.Popen(shell, start_new_session=True))
            pid_in(tmp_path / str(i))
        yield folders
        for one in folders:
            with contextlib.suppress(OSError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()

    def test_a_dead_parent_ends_the_last_groups(self, groups):
        calls, stubborn, other = groups
        guard = ProcessGroupGuard(grace=0.2)
        guard.set_groups([other.pid])
        guard.set_groups([calls.pid, stubborn.pid])
        guard._process.communicate()  # as if this process had gone: nobody writes any more
        assert [calls.wait(WAIT), stubborn.wait(WAIT)] == [-signal.SIGTERM, -signal.SIGKILL]
        wait_until(lambda: not alive_in(stubborn.pid))
        assert other.poll() is None

    def test_closing_the_guard_ends_no_group(self, groups):
        with ProcessGroupGuard(grace=0.0) as guard:
            guard.set_groups([one.pid for one in groups])
        assert guard._process.returncode == -signal.SIGKILL
        assert [one.poll() for one in groups] == [None] * 3

    def test_a_dead_guard_is_no_error(self, monkeypatch):
        with ProcessGroupGuard() as guard:
            os.killpg(guard._process.pid, signal.SIGKILL)
            guard._process.wait()
            for group in (1, 2):
                guard.set_groups([group])
        monkeypatch.setenv("PATH", "")
        with ProcessGroupGuard() as guard:
            guard.set_groups([1])


@pytest.mark.usefixtures("even_points")
class TestRun:
    def test_a_study(self, study, tmp_path):
        result = run(study, "echo {x}", workers=2, logs=tmp_path / "logs")
        logs = [(tmp_path / "logs" / f"{i}.out").read_text() for i in range(4)]
        assert logs == [f"{trial.value}\n" for trial in result.trials]
        assert [trial.value for trial in result.trials] == [trial.params["x"] for trial in result.trials]
        assert len({trial.value for trial in result.trials}) == 4
        assert Optimizer.load(study).trials == result.trials

    def test_failures_and_resuming(self, study):
        command = "case {x} in -*) exit 1;; *) echo {x};; esac"
        result = run(study, command)
        assert [t.state for t in result.trials] == [
            "failed" if t.params["x"] < 0 else "complete" for t in result.trials
        ]
        assert len({trial.state for trial in result.trials}) == 2
        before = study.read_bytes()
        assert run(study, "exit 1; echo {x}").trials == result.trials  # all are there
        assert study.read_bytes() == before

    def test_workers_run_side_by_side(self, study, tmp_path):
        """Each waits for the other."""
        wait = "touch at-{trial}; until [ -e at-0 ] && [ -e at-1 ]; do sleep 0.01; done"
        result = run(study, f"cd {tmp_path}; {wait}; echo {{x}}", trials=2, workers=2, timeout=WAIT)
        assert [trial.state for trial in result.trials] == ["complete"] * 2

    def test_a_slow_suggestion_delays_no_worker(self, optimizer, monkeypatch):
        """The other worker's command ends, and is told, while the next suggestion is being made."""
        propose, calls = optimizer._engine.propose, []

        def slowly(*arguments, number, **more):
            until = time.monotonic() + WAIT
            while number == 1 and not calls and time.monotonic() < until:
                time.sleep(0.01)
            return propose(*arguments, number=number, **more)

        monkeypatch.setattr(optimizer._engine, "propose", slowly)
        for progress in run_trials(optimizer, parse(["echo", "{x}"], SPACE), trials=2, workers=2):
            if progress.ended_trials and len(optimizer.trials) == 1:
                calls += progress.ended_trials
        assert [trial.number for trial, _ in calls] == [0]

    def test_an_interruption_ends_commands_and_keeps_the_study(self, study, optimizer, tmp_path):
        pid, cleaned_up = tmp_path / "pid", tmp_path / "cleaned-up"
        wait = f"trap 'touch {cleaned_up}; exit' TERM; echo $$ > {pid}; sleep 100 & wait"
        template = parse(["sh", "-c", f"[ {{trial}} = 0 ] || {{{{ {wait}; }}}}; echo {{x}}"], SPACE)
        with contextlib.closing(run_trials(optimizer, template, trials=5)) as progress:
            for _ in progress:
                if pid.exists():
                    break
        assert cleaned_up.exists()  # a command may end by itself before it is killed
        wait_until(lambda: not alive_in(pid_in(pid)), seconds=WAIT)
        assert [trial.state for trial in Optimizer.load(study).trials] == ["complete", "running"]

    @pytest.mark.slow
    def test_two_at_one_study(self, study):
        """The second is refused; what the first was doing goes on. The lock of a process that was killed is no lock."""
        rule = rf"one process at a time, but process {os.getpid()} on .* uses it"
        with study_in_file(study, SPACE), pytest.raises(DataError, match=rule):
            run(study, "echo {x}")
        script = f"from dre_jax.runtime.locks import file_in_use\nwith file_in_use({str(study)!r}): input(0)"
        with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout.read(1) == b"0"
            with pytest.raises(DataError, match=f"but process {other.pid} on"):
                run(study, "echo {x}")
            other.kill()
        assert len(run(study, "echo {x}", trials=1).trials) == 1
        assert sorted(path.name for path in study.parent.iterdir()) == ["study.json"]

    def test_ambiguous_output_costs_no_trial(self, study):
        """Before any value it ends the study, whose trial can be run again; later the trial fails."""
        with pytest.raises(ConfigError, match=r"trial 0: .* 'loss: 0.5' and 'epoch: 3'.*--metric"):
            run(study, "echo loss: 0.5; echo epoch: 3 # {x}")
        assert [trial.state for trial in Optimizer.load(study).trials] == ["running"]
        result = run(study, "echo loss: 0.5; [ {trial} = 0 ] || echo epoch: 3 # {x}", trials=2)
        assert [trial.state for trial in result.trials] == ["complete", "failed"]

    def test_a_command_that_will_not_be_the_best_is_ended(self, study, optimizer):
        for i in range(8):
            number = optimizer.add_running({"x": i / 10}).number
            for step in range(1, 11):
                optimizer.report(number, i / 10 + 1 / step, step)
            optimizer.tell(number, i / 10)
        script = "echo step 1: loss 9; echo step 2: loss 8.5; printf 'step 3: loss 7'; sleep 100; echo {x}"
        template = parse(["sh", "-c", script], SPACE)
        list(run_trials(optimizer, template, trials=9, curve=r"step (\d+): loss (\S+)"))
        stopped = Optimizer.load(study).trials[-1]
        assert stopped.state == "stopped"
        assert stopped.reports == {1.0: 9.0, 2.0: 8.5}  # the third line has no end
        assert stopped.value > 1
        for curve, problem in (("(", "unterminated"), ("(.)", "has 1")):
            with pytest.raises(ConfigError, match=f"regular expression.*{problem}"):
                list(run_trials(optimizer, template, trials=9, curve=curve))

    def test_reports_at_the_end_of_a_command_count(self, study, optimizer, monkeypatch):
        """The command ends while the study looks at its first report."""
        ready, pid = study.with_name("ready"), study.with_name("pid")

        def should_stop(_, number):
            process = pid_in(pid)
            ready.touch()
            os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
            return False

        monkeypatch.setattr(Optimizer, "should_stop", should_stop)
        wait = f"echo $$ > {pid}; until [ -e {ready} ]; do sleep 0.01; done"
        template = parse(["sh", "-c", f"echo step 1 has 4; {wait}; echo step 2 has 3; echo 3 # {{x}}"], SPACE)
        list(run_trials(optimizer, template, trials=1, curve=r"step (\d+) has (\S+)"))
        assert optimizer.trials[0].reports == {1.0: 4.0, 2.0: 3.0}

    def test_a_space_without_another_configuration_gives_one_warning(self, study):
        with pytest.warns(DataWarning, match="trial 2 repeats a configuration") as record:
            run(study, "echo 1 # {x}", space=Space({"x": Bool()}), trials=4)
        assert len(record) == 1


class TestOpening:
    def test_files_of_a_killed_writer_are_removed(self, study):
        left = study.with_name(f".{study.name}.123-abcd.tmp")
        left.write_text("half")
        with study_in_file(study, SPACE):
            assert not left.exists()

    def test_what_is_refused_leaves_no_folder(self, tmp_path):
        path = tmp_path / "new" / "study.json"
        for surrogates, direction, rule in [
            (None, "up", "direction must be one of"),
            ({"loss": None}, "minimize", "a study of one objective has one surrogate"),
        ]:
            with (
                pytest.raises(ConfigError, match=rule),
                study_in_file(path, SPACE, surrogates, directions={"value": direction}),
            ):
                pass
        assert not list(tmp_path.iterdir())
        with study_in_file(path, SPACE) as study:
            study.write()
        assert [one.name for one in path.parent.iterdir()] == ["study.json"]

    def test_a_study_of_something_else(self, study):
        Optimizer(SPACE, direction="maximize", seed=3).save(study)
        before = study.read_bytes()
        other = Space({"y": Float(0.0, 1.0)})
        for space, options, rule in [
            (other, {}, "a study of the space given"),
            (SPACE, {"directions": {"value": "minimize"}}, "of the direction given, minimize, but its own is maximize"),
            (SPACE, {"seed": 4}, "of seed 4, but its seed is 3"),
        ]:
            with pytest.raises(DataError, match=rule), study_in_file(study, space, **options):
                pass
        with study_in_file(study, SPACE) as result:
            pass
        assert (result.direction, result.seed) == ("maximize", 3)
        assert study.read_bytes() == before
