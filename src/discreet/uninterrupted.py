"""Work that an interrupt from the keyboard cannot cut in two."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")


def run_uninterrupted(work: Callable[[], T]) -> T:
    """Do work to its end; an interrupt that comes meanwhile is raised afterwards.

    Python delivers interrupts to the main thread only. So the main thread lets another one do the work, and waits for
    it, interrupt or not; the work must be short. A loss of power or ``kill -9`` still ends it anywhere.
    """
    if current_thread() is not main_thread():
        return work()
    value: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            value.append(work())
        except BaseException as error:  # handed to the caller, whatever it is
            failure.append(error)

    # Variables of the caller's context are seen in the thread as well.
    thread, interrupt = Thread(target=copy_context().run, args=(run,), name="discreet-uninterrupted"), None
    try:
        thread.start()
    except BaseException as error:  # an interrupt while the thread began, which it may have done all the same
        interrupt = error
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as error:
            interrupt = interrupt or error
    if interrupt is not None:
        raise interrupt
    if failure:
        raise failure[0]
    return value[0]
