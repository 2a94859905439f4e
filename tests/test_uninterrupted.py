"""Work that no interrupt cuts in two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue

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


class LateQueue(SimpleQueue[Callable[[], None]]):
    """An interrupt comes while work is handed over; it arrives so many seconds later, all the same."""

    wait = 0.0

    def put(self, item: Callable[[], None], block: bool = True, timeout: float | None = None) -> None:
        threading.Timer(self.wait, super().put, (item, block, timeout)).start()
        time.sleep(0.1)
        raise KeyboardInterrupt


@pytest.mark.parametrize("wait", [0.0, 0.3])
def test_work_that_is_interrupted_on_its_way_is_done_now_or_never(monkeypatch: pytest.MonkeyPatch, wait: float) -> None:
    """When the interrupt is raised, all of the work was done or none of it will be."""
    done: list[str] = []

    def work() -> None:
        done.append("begun")
        time.sleep(0.3)
        done.append("ended")

    monkeypatch.setattr(LateQueue, "wait", wait)
    monkeypatch.setattr(uninterrupted, "SimpleQueue", LateQueue)
    with monkeypatch.context() as patch:
        patch.setattr(uninterrupted, "_helpers", [])
        with pytest.raises(KeyboardInterrupt):
            run_uninterrupted(work)
    found = list(done)
    time.sleep(0.8)
    assert found == done == ([] if wait else ["begun", "ended"])


def test_an_interrupted_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt while the thread is started: the work is never done, and the next work has a thread."""
    done: list[str] = []

    class InterruptedStart(threading.Thread):
        def start(self) -> None:
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr(uninterrupted, "_helpers", [])
    with monkeypatch.context() as patch:
        patch.setattr(uninterrupted, "Thread", InterruptedStart)
        with pytest.raises(KeyboardInterrupt):
            run_uninterrupted(lambda: done.append("first"))
    run_uninterrupted(lambda: done.append("second"))
    assert done == ["second"]


def test_one_thread_does_all_work_and_holds_none_of_it() -> None:
    """Threads are not started again and again; and what was worked on is gone when it is done."""

    class Counted:
        """Something of which it is known whether it is still held."""

    threads = [run_uninterrupted(threading.current_thread) for _ in range(3)]
    assert len(set(threads)) == 1
    counted = Counted()
    held = weakref.ref(counted)
    run_uninterrupted(partial(repr, counted))
    run_uninterrupted(lambda: None)  # begins when nothing is left to do of the work before
    del counted
    assert held() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_has_a_thread_of_its_own() -> None:
    """The parent's thread does not run in a child."""
    code = (
        "import os; from discreet.uninterrupted import run_uninterrupted as run; run(os.getpid)\n"
        "child = os.fork()\n"
        "if not child: os._exit(run(os.getpid) != os.getpid())\n"
        "raise SystemExit(os.waitpid(child, 0)[1])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0  # noqa: S603  # our own words


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
