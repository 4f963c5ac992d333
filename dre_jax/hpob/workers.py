"""Worker processes that process items one by one; the death of a worker is a result too.

Each is a fresh interpreter on one thread. Each worker has its own pool and one item at a time, because the death of a
worker of `concurrent.futures` loses all items of its pool without telling which one caused it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from typing import Any, NamedTuple

from dre_jax.errors import MethodError

Work = Callable[[Any], Any]
NamedItem = tuple[Any, Any]
"""A name, and an item or its result."""

_JOIN_TIMEOUT = 5.0  # seconds that a process is given to end
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


class WorkerDeath(NamedTuple):
    """Result of an item whose process ended before it returned."""

    how: str
    """How the process ended, such as "was ended by SIGTERM"."""


class Pool:
    """Processes that are started as items need them, at most ``count``, and stay until `close`.

    ``make`` makes, in each process, the function that is called with items. It must pickle.
    """

    def __init__(self, make: Callable[[], Work], count: int) -> None:
        self._make = make
        self._count = count
        self._workers: list[_Worker] = []

    def run(self, items: Iterable[NamedItem]) -> Iterator[NamedItem]:
        """The results with their items' names, in the order in which they come; `WorkerDeath` where there is none.

        Items must pickle; each is read when a process is free. Raises `MethodError` where no process can start.
        """
        waiting, at = iter(items), dict[Future[Any], tuple[Any, _Worker]]()
        try:
            self._assign_items(waiting, at)
            while at:
                done_futures, _ = wait(at, return_when=FIRST_COMPLETED)
                outcomes = [(at[future][0], at[future][1].outcome(future)) for future in done_futures]
                at = {future: name for future, name in at.items() if future not in done_futures}
                self._assign_items(waiting, at)  # before the caller's own work with the outcomes
                yield from outcomes
        finally:
            # A caller that stops early does not want the rest, and the next call must not get it.
            if at:
                self.close()

    def close(self) -> None:
        """Ends the processes, also those that compute."""
        while self._workers:
            self._workers.pop().end()

    def _assign_items(self, waiting: Iterator[NamedItem], at: dict[Future[Any], tuple[Any, _Worker]]) -> None:
        """Gives items to idle workers, and starts workers while items remain."""
        busy = [worker for _, worker in at.values()]
        for worker in [worker for worker in self._workers if worker not in busy and not worker.alive]:
            self._workers.remove(worker)
            worker.end()
        idle = [worker for worker in self._workers if worker not in busy]
        while (idle or len(self._workers) < self._count) and (item := next(waiting, None)) is not None:
            if not idle:
                idle.append(_Worker(self._make))
                self._workers.append(idle[-1])
            worker = idle.pop()
            at[worker.submit(item[1])] = item[0], worker


class _Worker:
    """A process in a pool of its own: if it dies, only its current item is lost."""

    def __init__(self, make: Callable[[], Work]) -> None:
        before = multiprocessing.active_children()
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), end_with_parent)
        with _environment(_ONE_THREAD), _block_interrupts():
            self._start_future = self._pool.submit(_initialise_worker, make)
        self._process = next(child for child in multiprocessing.active_children() if child not in before)

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def submit(self, item: Any) -> Future[Any]:
        return self._pool.submit(_apply_work, item)

    def outcome(self, future: Future[Any]) -> Any:
        """Returns the result of an item. Raises `MethodError` if the process could not start."""
        wrong = self._start_future.exception()
        if isinstance(wrong, BrokenProcessPool):
            hint = "a script that uses several must keep its own work under `if __name__ == '__main__'`"
            raise MethodError(f"a worker process must start, but one {self._ending()}; {hint}")
        if wrong is not None:
            raise MethodError(str(wrong)) from wrong
        try:
            return future.result()
        except BrokenProcessPool:
            return WorkerDeath(self._ending())

    def _ending(self) -> str:
        self._pool.shutdown()  # after which the process has been waited for
        status = self._process.exitcode
        if status is None or status >= 0:
            return f"ended with status {status}"
        name = signal.Signals(-status).name
        return f"was ended by {name}{' (too little memory?)' if name == 'SIGKILL' else ''}"

    def end(self) -> None:
        self._process.terminate()
        self._process.join(_JOIN_TIMEOUT)
        if self._process.is_alive():
            self._process.kill()
        self._pool.shutdown()


_work_function: list[Work] = []
"""The function that this process applies to items, if it is a worker."""


def _initialise_worker(make: Callable[[], Work]) -> None:
    _work_function[:] = [make()]


def _apply_work(item: Any) -> Any:
    return _work_function[0](item)


def end_with_parent() -> None:
    """Ends this process when its parent ends; the kernel does not do so when a parent is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def exit_after_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=exit_after_parent, daemon=True).start()


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for processes that are started inside the block."""
    before = {name: os.environ[name] for name in values if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Blocks SIGINT in processes that are started inside the block: this process ends them after an interrupt."""
    resource_tracker.ensure_running()  # which comes with the first process, and ends by letting interrupts in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
