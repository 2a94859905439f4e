"""The jobs of one question on a cluster: how far they are, how they are ended, and whether anybody works on them.

No clock ends a question, because how long it takes depends on the data. But a cluster without executors does nothing,
whatever the data, and Spark would wait for it for ever: where there was none for a while, the jobs are ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from discreet.engines.engine import ProgressCallback
from discreet.engines.failure import LOG
from discreet.errors import UsageError

# Seconds between two looks, and without executors before a cluster counts as lost.
LOOK_EVERY, LOST_AFTER = 0.5, 60.0
_GROUP, _WORDS, _INTERRUPT = "spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"


def is_classic(spark: Any) -> bool:
    """Whether a session runs beside its driver, and not behind Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def is_local(spark: Any) -> bool:
    """Whether Spark is one process on this machine."""
    return is_classic(spark) and str(spark.sparkContext.master).startswith("local")


def count_executors(spark: Any) -> int | None:
    """The executors of a cluster; None on one machine, behind Spark Connect, and where they come when needed."""
    if not is_classic(spark) or is_local(spark):
        return None
    context = spark.sparkContext
    if context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return None
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001  # the driver is one of them


def require_java(spark: Any) -> None:
    """Refuse a session whose Java has ended, as it does where its memory runs out. A process can start it once."""
    if not is_classic(spark):
        return
    try:
        ended = bool(spark.sparkContext._jsc.sc().isStopped())  # noqa: SLF001  # there is no other way to ask
    except Exception as error:
        LOG.error("Java does not answer.", exc_info=error)
        ended = True
    if ended:
        raise UsageError("The Java of Spark has ended. Start this program again. Nothing was charged.")


def require_executors(spark: Any) -> None:
    """Refuse a cluster that has no executors, after waiting for the first of them."""
    start = time.monotonic()
    while count_executors(spark) == 0:
        if time.monotonic() - start > LOST_AFTER:
            raise UsageError("The cluster of Spark has no executors. Start its workers. Nothing was charged.")
        time.sleep(LOOK_EVERY)


class JobWatch:
    """Looks after the jobs that this thread starts, from ``start`` to ``finish``. For classic sessions."""

    def __init__(self, spark: Any, watch: ProgressCallback | None) -> None:
        self._spark = spark
        self._context = spark.sparkContext
        self._watch = watch
        self._group = f"discreet-{uuid4().hex}"
        self._before: dict[str, str | None] = {}
        self._over = Event()
        self._looker: Thread | None = None

    def start(self) -> None:
        """Name the jobs of this thread, and look at them where there is something to see."""
        own = {_GROUP: self._group, _WORDS: "a question", _INTERRUPT: "true"}
        self._before = {name: self._context.getLocalProperty(name) for name in own}
        for name, value in own.items():
            self._context.setLocalProperty(name, value)
        if self._watch is not None or count_executors(self._spark) is not None:
            self._looker = Thread(target=self._look_on, name="discreet-spark", daemon=True)
            self._looker.start()

    def finish(self, *, cancel: bool) -> None:
        """End jobs that still run, if asked to, and give the thread its own names back."""
        self._over.set()
        if self._looker is not None:
            self._looker.join()
        if cancel:
            self._cancel()
        for name, value in self._before.items():
            self._context.setLocalProperty(name, value)

    def _look_on(self) -> None:
        try:
            self._look()
        except Exception as error:  # a thread that fails would print what it failed of
            LOG.error("The jobs of a question are no longer looked after.", exc_info=error)

    def _look(self) -> None:
        lost_since: float | None = None
        while not self._over.wait(LOOK_EVERY):
            if count_executors(self._spark) == 0:
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > LOST_AFTER:
                    LOG.error("The cluster has no executors: the question was ended.")
                    self._cancel()
                    return
            else:
                lost_since = None
            if self._watch is not None:
                self._watch(self._find_share())

    def _cancel(self) -> None:
        """End the jobs, and those that would begin only now."""
        self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)  # noqa: SLF001  # Python's own ends no later ones

    def _find_share(self) -> float:
        """The share of tasks that are done, of those stages that are known."""
        tracker = self._context.statusTracker()
        infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for info in infos if info is not None for stage in info.stageIds]
        known = [stage for stage in stages if stage is not None]
        tasks = sum(stage.numTasks for stage in known)
        return sum(stage.numCompletedTasks for stage in known) / tasks if tasks else 0.0


def watch_connect(spark: Any, watch: ProgressCallback) -> Callable[[], None]:
    """Tell how far the statements of a session behind Spark Connect are; what is returned ends that."""

    def tell(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001, FBT001  # Spark's form
        tasks = sum(stage.num_tasks for stage in stages or ())
        watch(sum(stage.num_completed_tasks for stage in stages) / tasks if tasks else 0.0)

    spark.registerProgressHandler(tell)
    return lambda: spark.removeProgressHandler(tell)
