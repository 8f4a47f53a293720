"""The door to platforms that run Spark: runs are started there, and end by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from lakebed.model.names import Micros

Platform = Literal["serverless", "cluster", "shared"]
"""EMR Serverless; a cluster of EMR for one run, which ends with it; one that stays."""

RunState = Literal["open", "succeeded", "failed", "no capacity"]


class RunAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a bulk import message that concerns a platform. Other fields are not read.

    spark_conf: settings of Spark.
    instance_types: of a cluster's machines, tried in this order; empty: the instance's.
    units_max: machines of a cluster beside its first, at most; None: the instance's.
    spot: on spare machines where there are some.
    """

    platform: Platform = "serverless"
    spark_conf: Mapping[str, str] = {}
    instance_types: tuple[str, ...] = ()
    units_max: int | None = None
    spot: bool = False


class SparkRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the platform sees it.

    name: that it was started under.
    id: the platform's.
    state: open: it waits, runs or is being stopped; no capacity: the platform had no machines, and
        the program was never begun.
    reason: what the platform says of its state, and where logs are.
    launches: how often machines were asked for.
    ended_at: by the platform's clock; 0: it did not end, or the platform does not say
        when.
    """

    name: str
    id: str
    state: RunState
    reason: str = ""
    launches: int = 1
    ended_at: Micros = Micros(0)


class StartedRuns(Protocol):
    """The runs of one program on one platform.

    Every implementation passes `tests/contracts/spark/test_spark_runs.py`.
    """

    def since(self, at: Micros) -> list[SparkRun]:
        """Return the runs that were started since a time, each once. It may lag.

        Raises:
            UnavailableError: ask again.
        """
        ...


class SparkRuns(StartedRuns, Protocol):
    """The same for who may start them."""

    def start(self, name: str, asked: RunAsked, *, launch: int = 0) -> str:
        """Start a run and return its id; again under the same name, and it is started once, for as
        long as the platform remembers. The program is told the name.

        launch: how often machines were asked for in vain before; with a higher number than before,
            they are asked for again.

        Raises:
            InvalidError: the platform refuses it. UnavailableError: start it again.
        """
        ...
