"""The door to a platform that runs Spark: runs are started there, and end by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from lakebed.model.names import Micros

RunState = Literal["open", "succeeded", "failed"]


class SparkRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the platform sees it.

    name: that it was started under.
    id: the platform's.
    state: open: it waits, runs or is being stopped.
    reason: what the platform says of its state.
    """

    name: str
    id: str
    state: RunState
    reason: str = ""


class StartedRuns(Protocol):
    """The runs of one program on one platform."""

    def since(self, at: Micros) -> list[SparkRun]:
        """Return the runs that were started since a time. It may lag.

        Raises:
            UnavailableError: ask again.
        """
        ...


class SparkRuns(StartedRuns, Protocol):
    """The same for who may start them."""

    def start(self, name: str, conf: Mapping[str, str]) -> str:
        """Start a run and return its id; again under the same name, and it is started once, for as
        long as the platform remembers. The program is told the name. conf: settings of Spark.

        Raises:
            InvalidError: the platform refuses it. UnavailableError: start it again.
        """
        ...
