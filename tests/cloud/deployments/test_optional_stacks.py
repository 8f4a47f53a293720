"""Instances with some stacks, deployed one over the other over the same data: what each has works,
what it was deployed without says so."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from lakebed.backends.system.clock import SystemClock
from lakebed.errors import InvalidError
from lakebed.lake import Lake
from lakebed.model.jobs import INGEST_QUEUE
from localcloud.cloud import LocalCloud
from localcloud.templates.synthesis import synthesize
from tests.cloud.conftest import ROOT
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.users import put, send, stop_tasks, until, waiting
from tests.dsl.table_rows import SCHEMA, SMALL_LEAVES, rows, same_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

NAME = f"lakebed-{INSTANCE}"
TABLE = "lasting"
QUEUES = {"ingest", "query", "bulk-import", "batching"}
USUAL = QUEUES | {"people", "dashboard", "networking"}


class Step(NamedTuple):
    """A deployment: what it is called, the stacks that it is without, and its settings."""

    called: str
    without: tuple[str, ...] = ()
    settings: str = ""


STEPS = (
    Step("all that is usual"),
    Step("without what users send", tuple(sorted(QUEUES))),
    Step("feeds and no dashboard", ("dashboard", "query"), "feed_take = true"),
    Step(
        "nothing that is optional",
        tuple(sorted(USUAL)),
        "compaction_tasks_max = 0",
    ),
    Step("all there is", (), "feed_workers_max = 1\nfeed_push = true\nfeed_take = true"),
)
"""Each is deployed over the one before, and the first again over the last."""


@contextmanager
def deployed(assembly: Path, folder: Path) -> Iterator[tuple[RunningInstance, Lake]]:
    with LocalCloud(assembly, folder, clock=SystemClock(), kept=True) as cloud:
        instance = RunningInstance(cloud, folder / "cache")
        with instance.led_here(), instance.lake() as lake:
            yield instance, lake


def assembly_of(step: Step, folder: Path) -> Path:
    """Synthesize an instance as its file says."""
    file, assembly = folder / "lakebed.toml", folder / "assembly"
    folder.mkdir()
    file.write_text(
        f"""\
without = {list(step.without)}
[instance]
name = "{INSTANCE}"
architecture = "machine"
sources = ["{SOURCES}"]
{step.settings}
"""
    )
    synthesize(ROOT, assembly, {"file": str(file)})
    return assembly


def there_in(instance: RunningInstance) -> set[str]:
    parameter = instance.cloud.client("ssm").get_parameter(Name=f"/lakebed/{INSTANCE}")
    return set(json.loads(parameter["Parameter"]["Value"])["stacks"])


def works(
    instance: RunningInstance, lake: Lake, there: set[str], number: int
) -> Iterator[Callable[[], None]]:
    """Yield what must work in an instance with some stacks."""
    cloud, table = instance.cloud, lake.table(TABLE)

    def commit() -> None:
        table.ingest(rows(100, seed=10 + number), job=f"own-{number}")
        table.ingest(rows(50, seed=20 + number), job=f"queued-{number}", queued=True)
        cloud.settle()

    def upkeep() -> None:
        for kind in ("splitting", "compaction-creation", "garbage", "snapshots", "sweep"):
            cloud.fire(f"{NAME}-{kind}")

    def query() -> None:
        answer = cloud.invoke(f"{NAME}-query-answer", {"table": TABLE, "ranges": [{}]})
        assert answer.error is None
        assert answer.value["rows"] == table.count()

    def ingest() -> None:
        file = put(instance, f"optional/{number}.parquet", rows(30, seed=30 + number))
        message = {"id": f"sent-{number}", "table": TABLE, "files": [file]}
        send(instance, "ingest", json.dumps(message), message_group="one")
        cloud.fire(f"{NAME}-ingest-tasks")
        until(instance, "it is ingested", lambda: not waiting(instance, "ingest"))
        stop_tasks(instance)

    def submit() -> None:
        file = put(instance, f"optional/submitted-{number}.parquet", rows(20, seed=40 + number))
        assert table.submit([file]).added == 1
        cloud.fire(f"{NAME}-batching")
        cloud.fire(f"{NAME}-ingest-tasks")
        until(instance, "it is ingested", lambda: not waiting(instance, "ingest"))
        stop_tasks(instance)

    def take() -> None:
        assert cloud.invoke(f"{NAME}-feeds-take", {"time": "2026-11-22T10:00:00Z"}).error is None

    yield commit
    yield upkeep
    if "query" in there:
        yield query
    if "ingest" in there:
        yield ingest
    if "batching" in there:
        yield submit
    if "feeds" in there:
        yield take


def what_is_missing_says_so(instance: RunningInstance, lake: Lake, there: set[str]) -> None:
    functions = set(instance.cloud.deployment.running.functions)
    assert (f"{NAME}-query-answer" in functions) == ("query" in there)
    assert (f"{NAME}-feeds-take" in functions) == ("feeds" in there)
    for kind in QUEUES - there:
        with pytest.raises(InvalidError, match=f"was deployed without {kind}.*; or take '{kind}'"):
            lake.dead_letters(queues=[kind])
    for kind in QUEUES & there:
        lake.dead_letters(queues=[kind])
    if "ingest" not in there:
        with pytest.raises(InvalidError, match="`lakebed ingest`"):
            lake._app.queues.open(INGEST_QUEUE)
    if "batching" not in there:
        with pytest.raises(InvalidError, match="batching"):
            lake.table(TABLE).submit([f"s3://{SOURCES}/any.parquet"])


def test_instances_change_into_one_another_over_data(tmp_path: Path) -> None:
    folder, seen = tmp_path / "cloud", list[set[str]]()
    for number, step in enumerate([*STEPS, STEPS[0]]):
        assembly = assembly_of(step, tmp_path / str(number))
        with deployed(assembly, folder) as (instance, lake):
            if number == 0:
                settings = {**SMALL_LEAVES, "batch_seconds_max": 0}
                lake.create_table(TABLE, SCHEMA, settings=settings).ingest(rows(200))
            there = there_in(instance)
            seen.append(there)
            before = lake.table(TABLE).count()
            what_is_missing_says_so(instance, lake, there)
            for work in works(instance, lake, there, number):
                work()
            assert not instance.cloud.failures, step.called
            came = 150 + (30 if "ingest" in there else 0) + (20 if "batching" in there else 0)
            assert lake.table(TABLE).count() == before + came
    assert len({frozenset(there) for there in seen}) == len(STEPS)
    assert seen[3] == set()
    assert seen[0] == seen[-1] == USUAL


def test_what_waits_in_a_stack_that_goes_is_done_when_it_is_back(tmp_path: Path) -> None:
    """Its queue was not deleted with it."""
    usual, less = (assembly_of(step, tmp_path / step.called) for step in STEPS[:2])
    folder = tmp_path / "cloud"
    with deployed(usual, folder) as (instance, lake):
        lake.create_table(TABLE, SCHEMA)
        file = put(instance, "waits.parquet", rows(40))
        message = {"id": "waits", "table": TABLE, "files": [file]}
        send(instance, "ingest", json.dumps(message), message_group="one")
    with deployed(less, folder) as (instance, lake):
        instance.cloud.advance(120)
        assert lake.table(TABLE).count() == 0
        assert waiting(instance, "ingest") == 1
    with deployed(usual, folder) as (instance, lake):
        instance.cloud.fire(f"{NAME}-ingest-tasks")
        until(instance, "it is ingested", lambda: not waiting(instance, "ingest"))
        stop_tasks(instance)
        assert same_rows(lake.table(TABLE), rows(40))
