"""Calls in the background that Ctrl-C leaves whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable


class Job:
    """A call in a thread, waited for on an event: interrupting ``Thread.join`` takes a running thread for ended."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call, self._done = call, threading.Event()
        self._error: BaseException | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            self._call()
        except BaseException as error:  # handed on to whoever waits
            self._error = error
        finally:
            self._done.set()

    def wait(self, stop: Callable[[], None], poll: Callable[[], object] = lambda: None) -> None:
        """Until the call returns, calling ``poll`` now and then; Ctrl-C calls ``stop`` and is raised when it returned.

        Raises what the call raised.
        """
        interrupted = False
        while not self._done.is_set():
            try:
                self._done.wait(0.05)
                poll()
            except KeyboardInterrupt:
                interrupted = True
                stop()
        if interrupted:
            raise KeyboardInterrupt
        if self._error is not None:
            raise self._error


def wait_for_all(jobs: Iterable[Job], stop: Callable[[], None]) -> None:
    """Wait for every job, whatever one raises; then raise the first of that."""
    errors: list[BaseException] = []
    for job in jobs:
        try:
            job.wait(stop)
        except BaseException as error:
            errors.append(error)
    if errors:
        raise errors[0]
