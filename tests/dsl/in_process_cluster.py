"""A cluster in this process, which can lose and double attempts."""

from collections.abc import Callable, Sequence

from lakebed.bootstrap.bulk_import import Task, Tasks
from lakebed.errors import UnavailableError

OutcomeOf = Callable[[str, int], str]
"""What becomes of a task of a stage: "done", "doubled", "lost answer" or "given up"."""


class InProcessCluster:
    """Runs tasks one after the other, last one first. stages: that were run."""

    tasks_at_once = 2

    def __init__(
        self, tasks: Tasks, outcome_of: OutcomeOf = lambda _stage, _number: "done"
    ) -> None:
        self._tasks = tasks
        self._outcome_of = outcome_of
        self.stages: list[str] = []

    def sort(self, job: bytes, works: Sequence[bytes]) -> list[bytes]:
        return self._run("sort", self._tasks.sort, job, works)

    def merge(self, job: bytes, works: Sequence[bytes]) -> list[bytes]:
        return self._run("merge", self._tasks.merge, job, works)

    def _run(self, stage: str, task: Task, job: bytes, works: Sequence[bytes]) -> list[bytes]:
        self.stages.append(stage)
        answers = []
        for number, work in reversed(list(enumerate(works))):
            answers.append(task(job, work))
            match self._outcome_of(stage, number):
                case "doubled":
                    task(job, work)
                case "lost answer":
                    answers[-1] = task(job, work)
                case "given up":
                    raise UnavailableError("the cluster gave the job up")
        return answers
