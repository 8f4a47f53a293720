"""All that calls functions by itself: queues and streams. Which may be received from, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from localcloud.runner.event_sources import Failure, InjectedFaults, QueueSource
from localcloud.runner.stream_sources import StreamSource
from localcloud.runner.workers import Workers
from localcloud.services.amazon import Amazon
from localcloud.services.cloud_clock import CloudClock
from localcloud.templates.running import Running

MARGIN_SECONDS = 0.05
"""Seconds between the return of a message and the look for it."""

Figures = Mapping[str, Mapping[str, float]]
"""Figures of queues, by name."""


class EventDelivery:
    """Sources of events of an assembly. failed: is called for each failure."""

    def __init__(
        self,
        running: Running,
        amazon: Amazon,
        workers: Workers,
        *,
        clock: CloudClock,
        faults: InjectedFaults,
        failed: Callable[[Failure], None],
    ) -> None:
        functions = running.functions
        self._queues = [
            QueueSource(
                spec, functions[spec.function], amazon, workers, faults=faults, failed=failed
            )
            for spec in running.sources
        ]
        self._streams = [
            StreamSource(
                spec,
                functions[spec.function],
                amazon,
                workers,
                clock=clock,
                faults=faults,
                failed=failed,
            )
            for spec in running.streams
        ]

    def receive(self, queues: Figures, calls_max: int) -> list[Callable[[], None]]:
        """Return calls of functions with what was received, at most so many: each must be made."""
        calls: list[Callable[[], None]] = []
        for source in self._queues:
            waiting = queues.get(source.spec.queue, {}).get("visible", 0)
            while waiting > 0 and len(calls) < calls_max and source.may_take_more:
                batch = source.receive()
                if not batch:
                    break
                waiting -= len(batch)
                calls.append(partial(source.run, batch))
        for stream in self._streams:
            if len(calls) < calls_max and (records := stream.receive()):
                calls.append(partial(stream.run, records))
        return calls

    def comebacks(self, queues: Figures, now: float) -> list[float]:
        """Return when what is hidden, or failed, can be received again."""
        called = {source.spec.queue for source in self._queues}
        hidden = [
            now + figures["back_seconds"] + MARGIN_SECONDS
            for name, figures in queues.items()
            if name in called and figures["hidden"]
        ]
        return hidden + [stream.again_at for stream in self._streams if stream.again_at > now]
