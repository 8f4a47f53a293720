"""A lake in which all is well, and in which tests plant faults."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lakebed.backends.memory.account import MemoryAccount
from lakebed.backends.memory.clock import START
from lakebed.backends.memory.deployed_parts import ACCOUNT, REGION, MemoryDeployedParts
from lakebed.backends.memory.machine import MemoryMachine
from lakebed.backends.system.clock import SystemClock
from lakebed.config.accounts.quotas import QUOTAS
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.instance import InstanceId
from lakebed.config.job_queues import JOB_QUEUES, TICK_QUEUES
from lakebed.config.settings import TableSettings
from lakebed.doctor.check import DoctorReport
from lakebed.doctor.checks.all_checks import ALL_CHECKS
from lakebed.doctor.patient import Patient, Survey, SurveyedTable
from lakebed.doctor.run_checks import RunChecks
from lakebed.errors import InvalidError
from lakebed.inspection.status import NodeStatus, TableStatus
from lakebed.model.formats import NEWEST
from lakebed.model.names import Micros, TableId, TableName
from lakebed.model.releases import THIS
from lakebed.ports.job_tracker import JobReport
from lakebed.ports.table_marks import TableMark
from lakebed.ports.table_registry import TableEntry
from lakebed.upgrades.judge_upgrade import UpgradeStatus, status_of

TRIPS, WATCHED = TableName("trips"), "s3://landing/trips/"
KINDS = [shape.kind for shape in (*JOB_QUEUES, *TICK_QUEUES)]
RESOURCES = InstanceResources(
    instance=InstanceId("dev"),
    bucket=f"lakebed-dev-data-{ACCOUNT}-{REGION}",
    log_table="lakebed-dev-log",
    registry_table="lakebed-dev-registry",
    tracker_table="lakebed-dev-tracker",
    queues={kind: f"https://sqs/{kind}.fifo" for kind in KINDS},
    sources=("s3://landing/trips",),
    release=THIS.name,
)
STATUS = TableStatus(
    name=TRIPS,
    id="0123",
    number=100,
    floor=7,
    generation=1,
    rows=1_000,
    rows_exact=True,
    files=2,
    bytes=8_400_000,
    leaves=1,
    nodes=(NodeStatus(id=1, field="id", rows=1_000, files=2, bytes=8_400_000),),
    jobs=(),
    garbage_files=0,
    garbage_bytes=0,
    garbage_due=0,
    pins=0,
    snapshots=(90, 80),
    settings={},
)


class HealthyLake:
    """A lake with a table; a test changes what it says. told: whether of files that arrive.

    asked: is called before each answer with the name of the method.
    """

    def __init__(self, *, told: bool = True) -> None:
        self.asked: Callable[[str], None] = lambda _: None
        self.names = [TableEntry(id=TableId("0123"), name=TRIPS, watched=WATCHED if told else "")]
        self.table = SurveyedTable(
            status=STATUS, settings=TableSettings(), merged_per_second=100_000.0
        )
        self.failed: dict[TableName, str] = {}
        self.unseen = 0
        self.lengths = dict.fromkeys(KINDS, (0, 0))
        self.reports: list[tuple[TableName, JobReport]] = []
        self.marked: dict[TableName, TableMark] = {TRIPS: TableMark()}
        self.upgraded = status_of(NEWEST, [], THIS.name)
        self.silent: list[str] = []
        self.damaged: list[str] = []
        self.redriven: list[str] = []

    def now(self) -> Micros:
        self.asked("now")
        return START

    def entries(self) -> Sequence[TableEntry]:
        self.asked("entries")
        return self.names

    def survey(self) -> Survey:
        self.asked("survey")
        return Survey(tables=(self.table,), failed=self.failed, unseen=self.unseen)

    def read_an_object(self) -> None:
        self.asked("read_an_object")

    def read_a_report(self) -> None:
        self.asked("read_a_report")

    def loads(self) -> Mapping[str, tuple[int, int]]:
        self.asked("loads")
        return self.lengths

    def damaged_messages(self) -> Sequence[str]:
        self.asked("damaged_messages")
        return self.damaged

    def redrive(self, queue: str) -> object:
        self.redriven.append(queue)
        self.lengths[queue] = (self.lengths[queue][1], 0)
        return None

    def failed_jobs(self, *, since_seconds: float) -> Sequence[tuple[TableName, JobReport]]:
        self.asked("failed_jobs")
        return self.reports

    def marks(self) -> Mapping[TableName, TableMark]:
        self.asked("marks")
        return self.marked

    def upgrade(self) -> UpgradeStatus:
        self.asked("upgrade")
        return self.upgraded

    def silent_tasks(self) -> Sequence[str]:
        self.asked("silent_tasks")
        return self.silent

    def changed(self, **status: object) -> None:
        """Let the table have another status."""
        self.table = msgspec.structs.replace(
            self.table, status=msgspec.structs.replace(self.table.status, **status)
        )

    def changed_leaf(self, **leaf: object) -> None:
        """Let the table's only leaf be another."""
        self.changed(nodes=(msgspec.structs.replace(self.table.status.nodes[0], **leaf),))


class World:
    """All that the doctor looks at. machine: replaced as a whole."""

    def __init__(self, *, instance: bool = True) -> None:
        self.is_instance = instance
        self.resources = RESOURCES
        self.refuses_resources: Exception | None = None
        self.machine = MemoryMachine()
        self.lake = HealthyLake(told=instance)
        self.parts = MemoryDeployedParts(RESOURCES)
        self.quotas = {(q.service, q.code): float(q.new_account) for q in QUOTAS}
        self.function_runs, self.networks = 1_000, 2

    def patient(self) -> Patient:
        def absent() -> Any:  # noqa: ANN401 - never returns
            raise InvalidError("a directory has no such thing", hint="ask an instance")

        def resources() -> InstanceResources:
            if self.refuses_resources is not None:
                raise self.refuses_resources
            return self.resources

        account = MemoryAccount(
            self.quotas, function_runs=self.function_runs, networks=self.networks
        )
        return Patient(
            is_instance=self.is_instance,
            machine=self.machine,
            lake=self.lake,
            resources=resources if self.is_instance else absent,
            parts=(lambda: self.parts) if self.is_instance else absent,
            account=(lambda: account) if self.is_instance else absent,
        )

    def examined(self, *, seconds_max: float = 5.0) -> DoctorReport:
        return self.checks(seconds_max=seconds_max).run(self.patient())

    @staticmethod
    def checks(*, seconds_max: float = 5.0) -> RunChecks:
        return RunChecks(ALL_CHECKS, clock=SystemClock(), seconds_max=seconds_max)

    def found(self) -> list[str]:
        """The ids of checks that find something; all others must be healthy."""
        report = self.examined()
        assert not report.of("could not look"), report.of("could not look")
        return [one.id for one in report.of("found")]
