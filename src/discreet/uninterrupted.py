"""Work that an interrupt from the keyboard cannot cut in two."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")


class _Helper:
    """A thread that does the main thread's work, piece after piece. Starting one takes longer than most such work.

    It belongs to one process: in a forked child it does not run.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._serve, name="discreet-uninterrupted", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._serve_one()

    def _serve_one(self) -> None:
        """Nothing of a piece of work is held when it is done: exact numbers may be in it."""
        self.tasks.get()()


_helpers: list[_Helper] = []


def _find_helper() -> _Helper:
    """The helper of this process. An interrupt while one is made leaves at most a thread that waits for ever."""
    if not _helpers or _helpers[-1].process != os.getpid():
        _helpers[:] = [_Helper()]
    return _helpers[-1]


def run_uninterrupted(work: Callable[[], T]) -> T:
    """Do work to its end; an interrupt that comes meanwhile is raised afterwards.

    Python delivers interrupts to the main thread only. So the main thread lets another one do the work, and waits for
    it, interrupt or not; the work must be short. A loss of power or ``kill -9`` still ends it anywhere.

    An interrupt that comes before the work has begun takes the right to begin it away, so work is done to its end
    before this returns or raises, or it is never done.
    """
    if current_thread() is not main_thread():
        return work()
    value: list[T] = []
    failure: list[BaseException] = []
    right, done = Lock(), Event()

    def run() -> None:
        if not right.acquire(blocking=False):
            return
        try:
            value.append(work())
        except BaseException as error:  # handed to the caller, whatever it is
            failure.append(error)
        finally:
            done.set()

    try:
        # Variables of the caller's context are seen in the thread as well.
        _find_helper().tasks.put(partial(copy_context().run, run))
        done.wait()
    except BaseException:  # an interrupt, or no thread can be had
        if not right.acquire(blocking=False):
            _wait_for(done)
        raise
    if failure:
        raise failure[0]
    return value[0]


def _wait_for(done: Event) -> None:
    """Wait for work that has begun, whatever further interrupts come."""
    while not done.is_set():
        try:
            done.wait()
        except BaseException:  # noqa: S112  # the first interrupt is raised in the end, and one is enough
            continue
