"""Work that an interrupt from the keyboard cannot cut in two."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")


def run_uninterrupted(work: Callable[[], T]) -> T:
    """Do work to its end; an interrupt that comes meanwhile is raised afterwards.

    Python delivers interrupts to the main thread only. So the main thread lets another one do the work, and waits for
    it, interrupt or not; the work must be short. A loss of power or ``kill -9`` still ends it anywhere.

    An interrupt that comes before the work has begun takes the right to begin it away, so work is done to its end
    before this returns or raises, or it is never done. (A thread that is being started does not yet say that it is
    alive, so asking the thread would not do.)
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

    # Variables of the caller's context are seen in the thread as well.
    thread = Thread(target=copy_context().run, args=(run,), name="discreet-uninterrupted")
    try:
        thread.start()
        thread.join()
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
