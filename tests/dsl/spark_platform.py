"""A platform that runs Spark, in this process: it keeps runs, and tests say how they go."""

from typing import Self

import msgspec

from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import Micros
from lakebed.ports.spark_runs import RunAsked, RunState, SparkRun


class SparkPlatform:
    """Runs by name. asked: how often it was asked for a list. refuses: why it starts none.

    asked_for: what was asked of it, and how often before.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, SparkRun] = {}
        self.asked_for: list[tuple[str, RunAsked, int]] = []
        self.asked = 0
        self.loses_answers = False
        self.is_busy = False
        self.refuses = ""

    @property
    def runs(self) -> Self:
        """The platform itself, as doubles of others name theirs."""
        return self

    def start(self, name: str, asked: RunAsked, *, launch: int = 0) -> str:
        self.asked_for.append((name, asked, launch))
        if self.is_busy:
            raise UnavailableError("the platform is busy")
        if self.refuses:
            raise InvalidError(self.refuses)
        known = self.by_name.get(name)
        if known is None or known.launches <= launch:
            id_ = f"run-{len(self.asked_for)}" if launch else f"run-{len(self.by_name) + 1}"
            self.by_name[name] = SparkRun(name=name, id=id_, state="open", launches=launch + 1)
        if self.loses_answers:
            raise UnavailableError("no answer came")
        return self.by_name[name].id

    def started(self) -> int:
        return len(self.by_name)

    def begin(self) -> None:
        """Nothing of a run changes when it has begun."""

    def succeed(self) -> None:
        self.end("succeeded")

    def fail(self, why: str) -> None:
        self.end("failed", why)

    def since(self, _at: Micros) -> list[SparkRun]:
        self.asked += 1
        return list(self.by_name.values())

    def end(self, state: RunState, reason: str = "", name: str = "", *, at: int = 0) -> None:
        """Let a run end. name: "": the newest one."""
        name = name or list(self.by_name)[-1]
        run = self.by_name[name]
        self.by_name[name] = msgspec.structs.replace(
            run, state=state, reason=reason, ended_at=Micros(at)
        )
