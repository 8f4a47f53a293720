"""A platform that runs Spark, in this process: it keeps runs, and tests say how they go."""

from collections.abc import Mapping

from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import Micros
from lakebed.ports.spark_runs import RunState, SparkRun


class SparkPlatform:
    """Runs by name. asked: how often it was asked for a list. refuses: why it starts none."""

    def __init__(self) -> None:
        self.runs: dict[str, SparkRun] = {}
        self.conf: Mapping[str, str] = {}
        self.asked = 0
        self.loses_answers = False
        self.is_busy = False
        self.refuses = ""

    def start(self, name: str, conf: Mapping[str, str]) -> str:
        self.conf = conf
        if self.is_busy:
            raise UnavailableError("the platform is busy")
        if self.refuses:
            raise InvalidError(self.refuses)
        if name not in self.runs:
            id_ = f"run-{len(self.runs) + 1}"
            self.runs[name] = SparkRun(name=name, id=id_, state="open")
        if self.loses_answers:
            raise UnavailableError("no answer came")
        return self.runs[name].id

    def since(self, _at: Micros) -> list[SparkRun]:
        self.asked += 1
        return list(self.runs.values())

    def end(self, state: RunState, reason: str = "", name: str = "") -> None:
        """Let a run end. name: "": the newest one."""
        name = name or list(self.runs)[-1]
        run = self.runs[name]
        self.runs[name] = SparkRun(name=name, id=run.id, state=state, reason=reason)
