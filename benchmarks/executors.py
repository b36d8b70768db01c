"""Where a sweep's tasks run: processes of this machine, a Dask cluster, or Slurm jobs."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol

from solver import ProblemError

if TYPE_CHECKING:
    from benchmarks.suite import Task

Function = Callable[["Task"], dict[str, Any]]


class Submitter(Protocol):
    """``submit`` starts a task, ``stop`` ends what still runs; about ``ahead`` tasks are worth submitting at once."""

    ahead: int

    def submit(self, function: Function, task: Task) -> Future[dict[str, Any]]:
        """Run ``function(task)`` somewhere."""
        ...

    def stop(self) -> None:
        """End what still runs, without waiting for it."""


class Pool:
    """``jobs`` processes of this machine; a new pool replaces one whose process was killed."""

    def __init__(self, jobs: int) -> None:
        self.ahead = jobs
        self._pool = self._fresh()

    def _fresh(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.ahead, get_context("spawn"), initializer=_enter_worker, initargs=(os.getpid(),))

    def submit(self, function: Function, task: Task) -> Future[dict[str, Any]]:
        """Run in one of the processes."""
        try:
            return self._pool.submit(function, task)
        except BrokenProcessPool:
            self._pool = self._fresh()
            return self._pool.submit(function, task)

    def stop(self) -> None:
        """Kill the processes: what they had not finished is not on record, and will be run again."""
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


def _enter_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, end when it is gone, and keep what libraries print out of the command's output."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Cluster:
    """An engine with futures of its own, behind ``concurrent.futures``; ``end`` cancels what waits and leaves."""

    def __init__(self, executor: Executor, ahead: int, end: Callable[[], object]) -> None:
        self.ahead = ahead
        self._executor, self._end = executor, end

    def submit(self, function: Function, task: Task) -> Future[dict[str, Any]]:
        """Hand the task to the engine."""
        return self._executor.submit(function, task)

    def stop(self) -> None:
        """Cancel what waits, and leave."""
        self._end()


def dask_cluster(address: str, timeout: float = 10) -> Cluster:
    """The Dask scheduler at ``tcp://HOST:PORT`` (extra ``dask``); Dask moves the tasks of a lost worker to others.

    The workers need minbubble installed, and as many threads a task as the suite's settings ask for.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ProblemError("needs Dask: pip install 'minbubble[dask]'", "--executor dask") from None
    try:
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as err:
        raise ProblemError(f"no Dask scheduler answers at {address}: {err}", "--executor") from None
    executor = client.get_executor(pure=False)

    def end() -> None:
        executor.shutdown(wait=False)
        client.close()

    return Cluster(executor, 10_000, end)


class _Jobs(ThreadPoolExecutor):
    """submitit jobs as futures, with one waiting thread a job."""

    def __init__(self, engine: Any, most: int) -> None:  # noqa: ANN401 - submitit is untyped
        super().__init__(most)
        self._engine = engine
        self._jobs: list[Any] = []

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        """Submit a job, and wait for it in a thread."""
        job = self._engine.submit(function, *args, **kwargs)
        self._jobs.append(job)
        return super().submit(job.result)

    def end(self) -> None:
        """Cancel the jobs that have not ended."""
        for job in self._jobs:
            if not job.done():
                job.cancel(check=False)
        self.shutdown(wait=False, cancel_futures=True)


def slurm_cluster(jobs: int, threads: int, minutes: int, folder: str, cluster: str = "slurm") -> Cluster:
    """Slurm jobs by submitit (extra ``slurm``), at most ``jobs`` at once, of ``threads`` cores and ``minutes`` each.

    Logs go to ``folder``, which the compute nodes must share. ``cluster="local"`` runs them as plain processes here.
    """
    try:
        import submitit
    except ImportError:
        raise ProblemError("needs submitit: pip install 'minbubble[slurm]'", "--executor slurm") from None
    try:
        engine = submitit.AutoExecutor(folder=folder, cluster=cluster)
    except RuntimeError as err:
        raise ProblemError(str(err), "--executor slurm") from None
    engine.update_parameters(timeout_min=minutes, cpus_per_task=threads, name="minbubble")
    waiting = _Jobs(engine, jobs)
    return Cluster(waiting, jobs, waiting.end)
