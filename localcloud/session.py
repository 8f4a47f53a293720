"""A local cloud that goes on in real time, and what other commands may ask of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localcloud.cloud import LocalCloud
from localcloud.control import ControlServer

FAILURES_SHOWN = 10


def serve(cloud: LocalCloud, folder: Path, *, stopped: threading.Event) -> list[str]:
    """Run a cloud until it is told to stop, by the event or by a command.

    Returns what could not be taken down, if it was told to take the stacks down.
    """
    left: list[str] = []

    def down(_: dict[str, Any]) -> None:
        left.extend(cloud.destroy())
        stopped.set()

    commands: dict[str, Callable[[dict[str, Any]], object]] = {
        "status": lambda _: status(cloud),
        "advance": lambda given: cloud.advance(given["seconds"]),
        "fire": lambda given: cloud.fire(*given["schedules"]),
        "invoke": lambda given: _invoked(cloud, given["function"], given["event"]),
        "down": down,
    }
    with ControlServer(folder, commands):
        cloud.run(stopped=stopped.wait)
    return left


def status(cloud: LocalCloud) -> dict[str, Any]:
    """Return what people want to know."""
    running = cloud.deployment.running
    return {
        "environment": cloud.environment(),
        "ahead_seconds": cloud.clock.ahead_seconds,
        "functions": sorted(running.functions),
        "schedules": {
            rule.name: {"expression": rule.expression, "enabled": rule.enabled}
            for rule in running.rules.values()
        },
        "queues": cloud.queues(),
        "alarms": cloud.alarms(),
        "failures": [
            {"function": failure.function, **failure.error}
            for failure in list(cloud.failures)[-FAILURES_SHOWN:]
        ],
    }


def _invoked(cloud: LocalCloud, function: str, event: object) -> dict[str, Any]:
    outcome = cloud.invoke(function, event)
    return {"value": outcome.value, "error": outcome.error}
