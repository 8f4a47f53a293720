"""A fault for each check: what is planted in a world in which all is well."""

from collections.abc import Callable

import msgspec

from lakebed.backends.memory.clock import START
from lakebed.backends.memory.machine import GIB, GOOD, MachineFigures, MemoryMachine
from lakebed.errors import CorruptError, DeniedError, StorageFullError
from lakebed.inspection.status import ConnectionStatus, JobStatus
from lakebed.model.formats import OLDEST
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, TableId, TransactionNumber
from lakebed.model.releases import BEFORE, THIS
from lakebed.ports.examined.deployed_parts import DeployedAlarm, Recipient
from lakebed.ports.examined.machine import Room
from lakebed.ports.job_tracker import JobReport
from lakebed.ports.processes import ProcessReport
from lakebed.ports.table_marks import Failed, Handled, TableMark
from lakebed.statestore.table_state.kept_versions import Holder
from lakebed.upgrades.judge_upgrade import status_of
from tests.unit.doctor.world import TRIPS, World

Fault = Callable[[World], None]
HOUR = 3_600 * MICROS_PER_SECOND


def raises(method: str, error: Exception) -> Callable[[str], None]:
    def asked(name: str) -> None:
        if name == method:
            raise error

    return asked


def denied(permission: str) -> DeniedError:
    return DeniedError("the store refuses the credentials", permission=permission)


def machine(**figures: object) -> Fault:
    def plant(world: World) -> None:
        world.machine = MemoryMachine(MachineFigures(**figures))

    return plant


def lacks(*packages: str) -> Fault:
    left = {name: version for name, version in GOOD.items() if name not in packages}
    return machine(versions=left)


def lake_refuses(method: str) -> Fault:
    def plant(world: World) -> None:
        world.lake.asked = raises(method, denied("dynamodb:Query"))

    return plant


def part(which: str, name: str, **fields: object) -> Fault:
    """One of the deployment's parts is changed."""

    def plant(world: World) -> None:
        parts = getattr(world.parts, which)
        parts[name] = msgspec.structs.replace(parts[name], **fields)

    return plant


def no_part(which: str, name: str) -> Fault:
    return lambda world: getattr(world.parts, which).pop(name)


def bucket(**fields: object) -> Fault:
    def plant(world: World) -> None:
        world.parts.own_bucket = msgspec.structs.replace(world.parts.own_bucket, **fields)

    return plant


def parts(**values: object) -> Fault:
    def plant(world: World) -> None:
        for name, value in values.items():
            setattr(world.parts, name, value)

    return plant


def status(**fields: object) -> Fault:
    return lambda world: world.lake.changed(**fields)


def leaf(**fields: object) -> Fault:
    return lambda world: world.lake.changed_leaf(**fields)


def survey(**figures: object) -> Fault:
    """Something else than its status is known of the table."""

    def plant(world: World) -> None:
        world.lake.table = msgspec.structs.replace(world.lake.table, **figures)

    return plant


def lake(**values: object) -> Fault:
    def plant(world: World) -> None:
        for name, value in values.items():
            setattr(world.lake, name, value)

    return plant


def entry(**fields: object) -> Fault:
    def plant(world: World) -> None:
        world.lake.names = [msgspec.structs.replace(world.lake.names[0], **fields)]

    return plant


def quota(service: str, code: str) -> Fault:
    return lambda world: world.quotas.update({(service, code): 0.0})


def machines_beyond_the_quota(world: World) -> None:
    world.resources = msgspec.structs.replace(world.resources, quotas={"L-1216C47A": 16})


def wrong_account(world: World) -> None:
    world.parts.who = msgspec.structs.replace(world.parts.who, account="999999999999")


def root(world: World) -> None:
    world.parts.who = msgspec.structs.replace(world.parts.who, arn="arn:aws:iam::1:root")


def refused_credentials(world: World) -> None:
    world.parts._asked = raises("identity", denied("sts:GetCallerIdentity"))


def hidden_parameter(world: World) -> None:
    world.refuses_resources = denied("ssm:GetParameter")


def broken_lake(world: World) -> None:
    world.lake.asked = raises("now", CorruptError("a database is damaged", hint="restore it"))


def full_folder(world: World) -> None:
    error = StorageFullError("no space", hint="free some")
    world.machine = MemoryMachine(asked=raises("write_a_file", error))


def other_release(world: World) -> None:
    world.resources = msgspec.structs.replace(world.resources, release=BEFORE.name)


def newer_lake(world: World) -> None:
    world.lake.upgraded = msgspec.structs.replace(world.lake.upgraded, gate="99.0")


def old_process(world: World) -> None:
    old = ProcessReport(
        process="p", program="lakebed", release=BEFORE.name, reads={}, started=START, at=START
    )
    world.lake.upgraded = msgspec.structs.replace(world.lake.upgraded, processes=[old])


def unfinished(world: World) -> None:
    world.lake.upgraded = status_of(OLDEST, [], THIS.name)


def paused(world: World) -> None:
    for name, rule in world.parts.rule_of.items():
        part("rule_of", name, enabled=not rule.scheduled)(world)


def alarm_on(world: World) -> None:
    name = next(iter(world.parts.alarm_of))
    part("alarm_of", name, state="ALARM", reason="too many")(world)


def unconfirmed(world: World) -> None:
    world.parts.heard_by.append(Recipient(protocol="email", endpoint="b@c.d", confirmed=False))


def silent_alarm(world: World) -> None:
    name = "lakebed-dev-garbage-handle-errors"
    world.parts.alarm_of[name] = DeployedAlarm(name=name, state="OK", actions=(), is_on=True)


def debt(world: World) -> None:
    world.lake.changed_leaf(files=100, rows=10**6)
    world.lake.table = msgspec.structs.replace(world.lake.table, merged_per_second=100.0)


def job(**fields: object) -> Fault:
    given = {"id": "j", "partition": 1, "files": 3, "age_seconds": 10.0} | fields
    return status(jobs=(JobStatus(**given),))


def holder(world: World) -> None:
    kept = Holder(kind="tag", name="old", number=3, until=None, bytes=10**9)
    world.lake.changed(holders=(kept,))


def fed(**fields: object) -> Fault:
    given = {
        "id": "0f",
        "version": 1,
        "source_splits": 1,
        "read": 1_000,
        "stored": 1_000,
        "quarantined": 0,
        "gaps": 0,
    }
    return status(connections=(ConnectionStatus(**(given | fields)),))


def letters(world: World) -> None:
    world.lake.lengths["ingest"] = (0, 3)


def long_queue(world: World) -> None:
    world.lake.lengths["ingest"] = (20_000, 0)


def failed_job(world: World) -> None:
    report = JobReport(
        table=TableId("0123"), job=JobId("a"), kind="ingest", event="failed", at=START, reason="x"
    )
    world.lake.reports.append((TRIPS, report))


def old_mark(world: World) -> None:
    done = Handled(TransactionNumber(100), Micros(START - 3 * HOUR))
    world.lake.marked[TRIPS] = TableMark(TransactionNumber(100), {"splitting": done})


def failing_mark(world: World) -> None:
    failed = Failed(5, Micros(START + HOUR))
    world.lake.marked[TRIPS] = TableMark(TransactionNumber(100), {}, {"splitting": failed})


PLANTED: dict[str, Fault] = {
    "python-old": machine(python=(3, 10, 4)),
    "pyarrow-other": machine(versions=GOOD | {"pyarrow": "22.0.0"}),
    "sqlite-old": machine(versions=GOOD | {"sqlite": "3.36.0"}),
    "aws-packages-missing": lacks("obstore"),
    "kernels-missing": lacks("numba"),
    "disk-nearly-full": machine(rooms=[Room(path="/lake", free=GIB // 2, size=100 * GIB)]),
    "files-nearly-out": machine(
        rooms=[Room(path="/lake", free=50 * GIB, size=100 * GIB, files_free=12)]
    ),
    "folder-on-network": machine(network_folders=["/lake (nfs4)"]),
    "folder-takes-no-file": full_folder,
    "disk-slow": machine(write_seconds=4.0),
    "memory-small": machine(memory_bytes=GIB // 2),
    "open-files-few": machine(files_max=64),
    "clock-wrong": machine(clock_ahead_seconds=-3_600.0),
    "leftovers": machine(leftovers=["spill 12-0"]),
    "credentials-refused": refused_credentials,
    "account-other": wrong_account,
    "root-user": root,
    "files-of-others": machine(foreign_files=["/lake/lake.json"]),
    "may-not-read-parameter": hidden_parameter,
    "may-not-list-tables": lake_refuses("entries"),
    "may-not-read-logs": lake(failed={TRIPS: "denied: the store refuses the credentials"}),
    "may-not-read-objects": lake_refuses("read_an_object"),
    "may-not-read-reports": lake_refuses("read_a_report"),
    "may-not-look-at-queues": lake_refuses("loads"),
    "lake-does-not-open": broken_lake,
    "release-other": other_release,
    "lake-newer": newer_lake,
    "older-processes": old_process,
    "upgrade-unfinished": unfinished,
    "instance-paused": paused,
    "schedules-off": part("rule_of", "lakebed-dev-sweep", enabled=False),
    "schedules-missing": no_part("rule_of", "lakebed-dev-garbage"),
    "folders-outside": entry(watched="s3://landing/rides/"),
    "buckets-silent": parts(sending=set()),
    "schedules-empty": part("rule_of", "lakebed-dev-garbage", targets=0),
    "event-sources-off": part("source_of", "commits", enabled=False),
    "event-sources-failing": part("source_of", "commits", problem="access denied"),
    "queues-unheard": no_part("source_of", "query"),
    "functions-broken": part("function_of", "lakebed-dev-commits-handle", problem="no image"),
    "functions-stopped": part("function_of", "lakebed-dev-commits-handle", reserved=0),
    "queues-missing": no_part("queue_of", "sweep"),
    "dead-letters-not-kept": part("queue_of", "sweep", has_dead_letters=False),
    "messages-kept-short": part("queue_of", "ingest", kept_seconds=60),
    "alarms-missing": no_part("alarm_of", "lakebed-dev-ingest-age"),
    "alarms-without-action": silent_alarm,
    "alarms-muted": part("alarm_of", "lakebed-dev-ingest-age", is_on=False),
    "alarms-on": alarm_on,
    "alarms-unheard": parts(heard_by=[]),
    "subscriptions-unconfirmed": unconfirmed,
    "bucket-missing": parts(own_bucket=None),
    "bucket-versions-off": bucket(versioned=False),
    "bucket-expires": bucket(expiring=("lake/",)),
    "bucket-open": bucket(closed=False),
    "bucket-overwrites": bucket(write_once=False),
    "bucket-keeps-deleted": bucket(old_versions_days=None),
    "tables-missing": no_part("table_of", "lakebed-dev-registry"),
    "tables-not-active": part("table_of", "lakebed-dev-log", status="ARCHIVED"),
    "tables-without-recovery": part("table_of", "lakebed-dev-log", recovers=False),
    "tables-unprotected": part("table_of", "lakebed-dev-log", protected=False),
    "tables-expire": part("table_of", "lakebed-dev-log", expiry="at"),
    "key-off": parts(key_states={"key-1": "PendingDeletion"}),
    "quota-function-runs": lambda world: setattr(world, "function_runs", 3),
    "quota-fargate": quota("fargate", "L-3032A538"),
    "quota-fargate-spot": quota("fargate", "L-36FBB829"),
    "quota-machines": machines_beyond_the_quota,
    "quota-spark": quota("emr-serverless", "L-D05C8A75"),
    "quota-networks": lambda world: setattr(world, "networks", 9),
    "images-missing": part("task_of", "ingest", is_there=False),
    "tasks-undefined": no_part("task_of", "compaction"),
    "cluster-missing": parts(cluster=""),
    "network-without-gateways": lambda world: setattr(
        world.parts,
        "own_network",
        msgspec.structs.replace(world.parts.own_network, gateways=("s3",)),
    ),
    "spark-missing": parts(spark="TERMINATED"),
    "stacks-failed": part("stack_of", "lakebed-dev-data", status="UPDATE_ROLLBACK_FAILED"),
    "stacks-drifted": part("stack_of", "lakebed-dev-data", drift="DRIFTED"),
    "table-unreadable": lake(failed={TRIPS: "corrupt: a checksum does not match"}),
    "table-quarantined": entry(online=False, quarantined=True),
    "table-offline": entry(online=False),
    "leaf-files-high": leaf(files=350, rows=10),
    "compaction-debt": debt,
    "compaction-stuck": job(age_seconds=90_000.0),
    "compaction-rejected": job(report="rejected", reason="a sum is too large"),
    "log-long": status(number=5_000),
    "snapshot-alone": status(number=50_000, snapshots=(49_000,)),
    "log-time-ahead": survey(ahead_seconds=86_400.0),
    "garbage-stays": status(garbage_files=9, garbage_due=9, garbage_bytes=10**9),
    "versions-held": holder,
    "state-over-disk": survey(state_bytes=171 << 20),
    "leaf-unsplittable": leaf(unsplittable=True),
    "leaf-unsplit": leaf(rows=50_000_000),
    "feed-gaps": fed(gaps=2),
    "feed-failing": fed(errors_in_row=7),
    "feed-quarantines": fed(quarantined=300),
    "dead-letters": letters,
    "messages-damaged": lake(damaged=["a message contradicts its checksum"]),
    "queue-long": long_queue,
    "jobs-failed": failed_job,
    "marks-old": old_mark,
    "work-failing": failing_mark,
    "tasks-silent": lake(silent=["compaction 0123, since 2026-01-01"]),
}
