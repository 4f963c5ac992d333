"""Worker processes that work off items one by one, and whose deaths are results like any other.

Each is a fresh interpreter on one thread, with a pipe to this process. `concurrent.futures` has such pools too, but
when one of its workers dies, it does not say which item killed it, and all items that it holds are lost.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from dre_jax.errors import DreError, MethodError

Work = Callable[[Any], Any]
Named = tuple[Any, Any]
"""A name, and an item or its result."""

_PATIENCE = 5.0  # seconds that a process is given to end
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    # JAX: the threads of its runtime, the devices of a CPU, and the memory of an accelerator that others use too.
    "NPROC": "1",
    "JAX_NUM_CPU_DEVICES": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


class Died(NamedTuple):
    """In the place of an item's result: the process that was at it is no more."""

    how: str
    """Such as "was ended by SIGTERM"."""


class Pool:
    """Processes that are started as items need them, and stay until `close`.

    Args:
      make: makes, in each process, the function that is called with items. It must pickle.
      count: processes at most.
    """

    def __init__(self, make: Callable[[], Work], count: int) -> None:
        self._make = make
        self._count = count
        self._workers: list[_Worker] = []

    def run(self, items: Iterable[Named]) -> Iterator[Named]:
        """The results with their items' names, in the order in which they come; `Died` where there is none.

        Items must pickle; each is asked for when a process is free. Raises `MethodError` where no process can start.
        """
        waiting = iter(items)
        try:
            left = self._hand_out(waiting)
            while busy := [worker for worker in self._workers if worker.busy]:
                speaking = wait([worker.connection for worker in busy])
                heard = [self._hear(worker) for worker in busy if worker.connection in speaking]
                left = left and self._hand_out(waiting)  # before the caller's own work with what was heard
                yield from (one for one in heard if one is not None)
        finally:
            # Whoever stops listening does not want the rest, and the next call must not get it.
            if any(worker.busy for worker in self._workers):
                self.close()

    def close(self) -> None:
        """Ends the processes, whatever they are at."""
        while self._workers:
            self._workers.pop().end()

    def _hand_out(self, waiting: Iterator[Named]) -> bool:
        """Gives idle workers items, and hires as long as there are more; whether there may be any left."""
        for worker in [worker for worker in self._workers if not worker.alive and not worker.busy]:
            self._workers.remove(worker)
            worker.end()
        while True:
            idle = next((worker for worker in self._workers if not worker.busy), None)
            if idle is None and len(self._workers) >= self._count:
                return True
            found = next(waiting, None)
            if found is None:
                return False
            if idle is None:
                idle = _Worker(self._make)
                self._workers.append(idle)
            idle.take(found)

    def _hear(self, worker: _Worker) -> Named | None:
        """Reads a message of a worker; returns it if it is a result."""
        try:
            said = worker.connection.recv()
        except (EOFError, OSError):
            self._workers.remove(worker)
            return worker.last_words()
        return worker.hears_back(said)


class _Worker:
    """A process, and what it is at."""

    def __init__(self, make: Callable[[], Work]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, theirs = context.Pipe()
        # A daemon is ended with this process.
        self._process: BaseProcess = context.Process(target=_work, args=(theirs, make), daemon=True)
        with _environment(_ONE_THREAD), _interrupts_held_back():
            self._process.start()
        theirs.close()  # now only the worker holds it, and its end is the worker's
        self._ready = False
        self._at: Named | None = None

    @property
    def busy(self) -> bool:
        return self._at is not None

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def take(self, named: Named) -> None:
        self._at = named
        if self._ready:
            self._send()

    def _send(self) -> None:
        assert self._at is not None
        # One that has just died cannot be written to; that is heard of soon enough.
        with contextlib.suppress(OSError):
            self.connection.send(self._at[1])

    def hears_back(self, said: Any) -> Named | None:
        if self._ready:
            assert self._at is not None
            name, self._at = self._at[0], None
            return name, said
        if said is not None:
            raise MethodError(said)
        self._ready = True
        self._send()
        return None

    def last_words(self) -> Named | None:
        self._process.join(_PATIENCE)
        how, at, ready = _ending(self._process.exitcode), self._at, self._ready
        self.end()
        if not ready:
            hint = "a script that uses several must keep its own work under `if __name__ == '__main__'`"
            raise MethodError(f"a worker process must start, but one {how}; {hint}")
        return None if at is None else (at[0], Died(how))

    def end(self) -> None:
        self.connection.close()
        self._process.terminate()
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with status {status}"
    name = signal.Signals(-status).name
    return f"was ended by {name}{' (too little memory?)' if name == 'SIGKILL' else ''}"


def _work(connection: Connection, make: Callable[[], Work]) -> None:
    """Loop of a worker: sends None, or the reason why it cannot work; then takes items and sends results."""
    end_with_parent()
    try:
        work = make()
    except DreError as error:
        connection.send(str(error))
        return
    connection.send(None)
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        connection.send(work(item))


def end_with_parent() -> None:
    """Has this process end when the one that started it does: a parent that is killed ends nobody by itself."""
    threading.Thread(target=_exit_after, args=(multiprocessing.parent_process(),), daemon=True).start()


def _exit_after(parent: BaseProcess | None) -> None:
    assert parent is not None
    parent.join()
    os._exit(1)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables that a new process is to find when its first library looks."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """New processes do not hear of an interrupt, which a terminal sends to all: this one ends them. It loses none."""
    resource_tracker.ensure_running()  # which comes with the first process, and ends by letting interrupts in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
