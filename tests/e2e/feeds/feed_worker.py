"""A worker of feeds whose seconds pass faster: `... tests.e2e.feeds.feed_worker LAKE PACE [dies]`.

A worker is taken for dead after six seconds: a test that kills one each second needs shorter ones.
One that `dies` does so between a commit and the deletion of its messages.
"""

import os
import signal
import sys
import time

from lakebed.backends.aws.sqs_source import SqsReader
from lakebed.backends.system import SystemClock
from lakebed.bootstrap.local import open_local
from lakebed.cli.work import stop_signals
from lakebed.feed import Feeds
from lakebed.lake import Lake


class PacedClock(SystemClock):
    """A machine's clock, but for waits and what is measured: these pass so many times as fast."""

    def __init__(self, pace: float) -> None:
        self._pace = pace

    def monotonic(self) -> float:
        return time.monotonic() * self._pace

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self._pace)


def die(_reader: SqsReader, _end: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(path: str, pace: str, dies: str = "") -> None:
    if dies:
        SqsReader.acknowledge = die  # type: ignore[method-assign]  # it dies there
    lake = Lake(open_local(path, create=False, clock=PacedClock(float(pace))))
    with stop_signals() as stopped:
        Feeds(lake).work(stopped.is_set)


if __name__ == "__main__":
    main(*sys.argv[1:])
