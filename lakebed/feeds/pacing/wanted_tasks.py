"""Computes how many tasks of a platform feeds want, from what is defined and what workers say in
their beats.

Who starts tasks and each task decide by the same beats, and neither sends the other anything. The
starter has no memory, so it only starts: as many as are missing, at once. A task decides by its own
clock that it was not needed for long enough, and ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

import msgspec

from lakebed.feeds.living_workers import LISTEN_SECONDS, listen_to
from lakebed.feeds.pacing.elasticity import has_spare, needed_workers
from lakebed.feeds.pacing.wanted_workers import WorkerBounds, is_needed
from lakebed.feeds.pacing.worker_names import TAKE_PREFIX, TASK_PREFIX
from lakebed.ports.clock import Clock
from lakebed.ports.leases import Leases, WorkerBeat, WorkerId

Need = Literal["needed", "spare", "unneeded"]
"""The need for a task: `spare`: others can do what there is to do now."""


class SaidLoad(msgspec.Struct, frozen=True):
    """The load of a pipeline, as a worker says it in its beats: see `LoadReport`."""

    load: float = 0.0
    workers_min: int = 0
    workers_max: int = 0
    is_asking: bool = False


class HeardWorkers(msgspec.Struct, frozen=True, kw_only=True):
    """Workers that live, as one watcher hears them.

    tasks: those of them that are tasks, by name.
    others: how many are none.
    loads: of all their pipelines.
    """

    tasks: tuple[WorkerId, ...] = ()
    others: int = 0
    loads: tuple[SaidLoad, ...] = ()


def heard_workers(beats: Iterable[WorkerBeat], living: Collection[WorkerId]) -> HeardWorkers:
    """Return what those say that live, but for runs of the function, whose feeds are not for tasks.
    living: their names."""
    own = [beat for beat in beats if not beat.worker.startswith(TAKE_PREFIX)]
    heard = [beat for beat in own if beat.worker in living]
    tasks = tuple(sorted(one.worker for one in heard if one.worker.startswith(TASK_PREFIX)))
    loads = tuple(load for one in heard for load in _loads(one))
    return HeardWorkers(tasks=tasks, others=len(heard) - len(tasks), loads=loads)


def tasks_wanted(bounds: WorkerBounds, heard: HeardWorkers) -> int:
    """Return how many tasks are to run now, for who starts those that are missing: the least that
    is asked for; and while a pipeline asks for more, as many as do all that comes, without what
    workers do that are no tasks."""
    if not bounds.most or not any(one.is_asking for one in heard.loads):
        return bounds.least
    needed = min(needed_workers(heard.loads), bounds.most)
    return max(bounds.least, needed - heard.others)


def need_of(worker: WorkerId, bounds: WorkerBounds, heard: HeardWorkers) -> Need:
    """Return whether a task is needed. One at a time is spare: the last by name, where one worker
    fewer would have enough to spare."""
    allowed = max(bounds.least, bounds.most - heard.others)
    if not is_needed(worker, heard.tasks, allowed):
        return "unneeded"
    if is_needed(worker, heard.tasks, max(bounds.least, len(heard.tasks) - 1)):
        return "needed"
    return "spare" if has_spare(heard.loads, len(heard.tasks) + heard.others) else "needed"


def listened_tasks(bounds: WorkerBounds, leases: Leases, clock: Clock) -> int:
    """Return how many tasks are to run now, for one that looks once and remembers nothing. It
    listens only if a worker asks for more, dead or alive.

    Raises:
        UnavailableError: ask again.
    """
    if not bounds.most:
        return bounds.least
    beats = leases.workers()
    if not any(load.is_asking for beat in beats for load in _loads(beat)):
        return bounds.least
    return tasks_wanted(bounds, heard_workers(*listen_to(leases, clock, LISTEN_SECONDS)))


def _loads(beat: WorkerBeat) -> tuple[SaidLoad, ...]:
    """Return what a beat says; nothing, where a release wrote it that says it otherwise."""
    if not beat.report:
        return ()
    try:
        return msgspec.json.decode(beat.report, type=tuple[SaidLoad, ...])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
