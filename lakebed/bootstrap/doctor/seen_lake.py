"""A lake as the doctor sees it: opened when it is first looked at, and nothing of it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from lakebed.bootstrap.app import App
from lakebed.doctor.patient import Survey, SurveyedTable
from lakebed.errors import LakebedError, UnavailableError
from lakebed.inspection.status import table_status
from lakebed.model.asked_once import AskedOnce
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableName
from lakebed.model.paths import table_prefix
from lakebed.ports.job_tracker import NO_TABLE, JobEvent, JobReport
from lakebed.ports.table_marks import TableMark, TableMarks
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.table_state.figures import state_bytes
from lakebed.upgrades.judge_upgrade import UpgradeStatus

SURVEY_SECONDS_MAX = 10.0
"""Most seconds for all tables together; tables that are left then are not looked at."""
DAY_SECONDS, SILENT_SECONDS = 86_400, 3_600
REPORTS_MAX = 200
LETTERS_SENT_MAX = 1_000
QUEUE_DAMAGED = "queue-damaged"
"""The code that `fsck` gives a damaged queue: no leftover, though it is looked for among these."""


class SeenLake:
    """Looks at a lake. opened: its services, as an `AskedOnce`. marks: of its tables; None: it has
    none. seconds_max: for all tables."""

    def __init__(
        self,
        opened: Callable[[], App],
        *,
        marks: Callable[[], TableMarks] | None = None,
        seconds_max: float = SURVEY_SECONDS_MAX,
    ) -> None:
        self._opened = opened
        self._marks = marks
        self._seconds_max = seconds_max
        self._survey = AskedOnce(self._surveyed)

    def now(self) -> Micros:
        """Return the lake's time."""
        return self._opened().clock.now()

    def entries(self) -> Sequence[TableEntry]:
        """Return the names of tables."""
        return self._opened().catalog.list()

    def survey(self) -> Survey:
        """Return the tables, as far as there is time."""
        return self._survey()

    def read_an_object(self) -> None:
        """List objects, as readers do."""
        next(iter(self._opened().objects.list(table_prefix(NO_TABLE))), None)

    def read_a_report(self) -> None:
        """Ask the tracker of jobs."""
        self._opened().tracker.find(NO_TABLE, reports_max=1)

    def loads(self) -> Mapping[str, tuple[int, int]]:
        """Return about how many messages and dead letters each queue has."""
        return self._opened().inspection.dead_letters().loads()

    def damaged_messages(self) -> Sequence[str]:
        """Return what is wrong with queues of this machine."""
        found = self._opened().leftovers.find()
        return [str(one.facts["problem"]) for one in found if one.code == QUEUE_DAMAGED]

    def redrive(self, queue: str) -> object:
        """Send dead letters of a queue again, where nothing could be done twice."""
        redrive = self._opened().inspection.redrive()
        return redrive.run([queue], None, letters_max=LETTERS_SENT_MAX)

    def failed_jobs(self, *, since_seconds: float) -> Iterator[tuple[TableName, JobReport]]:
        """Yield jobs that failed or were rejected lately, table by table, as far as there is
        time."""
        app = self._opened()
        began, since = app.clock.monotonic(), self._ago(since_seconds)
        entries = app.catalog.list()
        for number, entry in enumerate(entries):
            if app.clock.monotonic() - began > self._seconds_max:
                raise UnavailableError("too many tables for the time", unseen=len(entries) - number)
            found = app.tracker.find(
                entry.id, events=("failed", "rejected"), since=since, reports_max=REPORTS_MAX
            )
            yield from ((entry.name, report) for report in found)

    def marks(self) -> Mapping[TableName, TableMark]:
        """Return the marks by which schedules find work."""
        if self._marks is None:
            return {}
        found = self._marks().list()
        return {one.name: found[one.id] for one in self.entries() if one.id in found}

    def upgrade(self) -> UpgradeStatus:
        """Return where an upgrade stands."""
        return self._opened().inspection.upgrade().status()

    def silent_tasks(self) -> Sequence[str]:
        """Return tasks of the last day that have not ended, and were not heard of for an hour."""
        heard, begun = self._ago(SILENT_SECONDS), self._ago(DAY_SECONDS)
        found = self._opened().tracker.tasks(reports_max=REPORTS_MAX)
        return [
            f"{task.kind} {task.task}, {task.jobs:,} jobs"
            for task in found
            if not task.ended and begun < task.at < heard
        ]

    def _ago(self, seconds: float) -> Micros:
        return Micros(round(self.now() - seconds * MICROS_PER_SECOND))

    def _surveyed(self) -> Survey:
        app = self._opened()
        began, tables, failed = app.clock.monotonic(), list[SurveyedTable](), dict[TableName, str]()
        entries = app.catalog.list()
        for number, entry in enumerate(entries):
            if app.clock.monotonic() - began > self._seconds_max:
                left = len(entries) - number
                return Survey(tables=tuple(tables), failed=failed, unseen=left)
            try:
                tables.append(self._figures(app, entry))
            except LakebedError as error:
                failed[entry.name] = f"{error.code()}: {error}"
        return Survey(tables=tuple(tables), failed=failed)

    def _figures(self, app: App, entry: TableEntry) -> SurveyedTable:
        table = app.catalog.opened(entry)
        status = table_status(
            table,
            tracker=app.tracker,
            snapshots=app.heads.snapshots(entry.id),
            online=entry.online,
        )
        with table.head.reading() as state:
            settings, last, size = state.settings(), state.head().at, state_bytes(state)
        return SurveyedTable(
            status=status,
            settings=settings,
            state_bytes=size,
            ahead_seconds=max(0.0, (last - app.clock.now()) / MICROS_PER_SECOND),
            merged_per_second=self._merged_per_second(app, entry),
        )

    def _merged_per_second(self, app: App, entry: TableEntry) -> float:
        committed: list[JobEvent] = ["committed"]
        reports = app.tracker.find(
            entry.id, events=committed, since=self._ago(DAY_SECONDS), reports_max=REPORTS_MAX
        )
        merged = [one for one in reports if one.kind == "compaction"]
        seconds = sum(one.seconds for one in merged)
        return sum(one.rows for one in merged) / seconds if seconds else 0.0
