"""Work that no interrupt cuts in two."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextvars import ContextVar

import pytest

from discreet import uninterrupted
from discreet.uninterrupted import run_uninterrupted


def test_values_and_errors_come_back() -> None:
    """The caller gets what the work gave, or raised."""
    assert run_uninterrupted(lambda: 3) == 3
    with pytest.raises(KeyError):
        run_uninterrupted(lambda: dict[str, int]()["nothing"])


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_work() -> None:
    """Interrupted in the middle: the work is done to its end, and then the interrupt is raised."""
    done = []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        done.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_uninterrupted(work)
    assert done == [True]


class InterruptedStart(threading.Thread):
    """An interrupt comes while the thread is being started; it begins so many seconds later, all the same."""

    wait = 0.0

    def start(self) -> None:
        threading.Timer(self.wait, self.run).start()
        time.sleep(0.1)
        raise KeyboardInterrupt


@pytest.mark.parametrize("wait", [0.0, 0.3])
def test_an_interrupted_start_does_the_work_now_or_never(monkeypatch: pytest.MonkeyPatch, wait: float) -> None:
    """When the interrupt is raised, all of the work was done or none of it will be."""
    done: list[str] = []

    def work() -> None:
        done.append("begun")
        time.sleep(0.3)
        done.append("ended")

    monkeypatch.setattr(InterruptedStart, "wait", wait)
    with monkeypatch.context() as patch:
        patch.setattr(uninterrupted, "Thread", InterruptedStart)
        with pytest.raises(KeyboardInterrupt):
            run_uninterrupted(work)
    found = list(done)
    time.sleep(0.8)
    assert found == done == ([] if wait else ["begun", "ended"])


def test_the_work_sees_the_context_of_its_caller() -> None:
    """What a caller set for itself and what it calls holds in the thread, too."""
    known: ContextVar[str] = ContextVar("known")
    known.set("here")
    assert run_uninterrupted(known.get) == "here"


def test_other_threads_need_no_thread() -> None:
    """Interrupts reach the main thread only; elsewhere the work is done where it is asked for."""
    found = []

    def elsewhere() -> None:
        found.append(run_uninterrupted(threading.current_thread) is threading.current_thread())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [True]
    assert run_uninterrupted(threading.current_thread) is not threading.main_thread()
