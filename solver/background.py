"""Calls in the background that Ctrl-C leaves whole."""

from __future__ import annotations

import threading
from collections.abc import Callable


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
        """Until the call returns, calling ``poll`` now and then; on Ctrl-C ``stop`` it first. Raises what it raised."""
        try:
            while not self._done.wait(0.05):
                poll()
        except KeyboardInterrupt:
            stop()
            self._done.wait()
            raise
        if self._error is not None:
            raise self._error
