"""Helpers of a merge as processes: used, killed, hanging, and gone with those whom they help."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap import machine
from lakebed.bootstrap.merge_process import merge_helpers
from lakebed.bootstrap.object_locations import ObjectsLocation
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.kernels.toolchain.presence import SWITCH, available
from lakebed.sorted_files.merging import file_merge, parallel_merge, stretch_merge
from lakebed.sorted_files.merging import helper_processes as helping
from lakebed.sorted_files.merging.helper_processes import Helper, MergeHelpers
from lakebed.sorted_files.merging.range_messages import (
    MergeTask,
    RangeFailed,
    RangeMerged,
    RangeTask,
)
from tests.e2e.test_lake_on_aws import instance, server  # noqa: F401 - they are fixtures
from tests.servers.fixtures import ministack  # noqa: F401 - it is one, too
from tests.servers.s3 import BUCKET, S3Server

pytestmark = [
    pytest.mark.skipif(not available(), reason="kernels need numba"),
    pytest.mark.timeout(120),
]

ROWS, FILES = 10_000, 4
TABLES_MAX = 40
SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"name": "string"})
Asked = list[RangeMerged | RangeFailed]


@pytest.fixture(autouse=True)
def _small_jobs_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "always")
    monkeypatch.setattr(file_merge, "HELPED_ROW_GROUPS_MIN", 1)
    monkeypatch.setattr(stretch_merge, "FILLED", 0.001)
    monkeypatch.setenv(machine.PROCESSES, "2")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What helpers answered. The process that asks waits for the first one."""
    found: Asked = []
    merged, rows = Helper.merged, parallel_merge.StretchMerge.rows

    def noted(self: Helper, task: MergeTask, wanted: RangeTask) -> RangeMerged | RangeFailed:
        found.append(merged(self, task, wanted))
        return found[-1]

    def late(*args: object) -> Iterator[pa.RecordBatch]:
        end = time.monotonic() + 30
        while not found and time.monotonic() < end:
            time.sleep(0.01)
        yield from rows(*args)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(Helper, "merged", noted)
    monkeypatch.setattr(parallel_merge.StretchMerge, "rows", late)
    return found


def fill(lake: lakebed.Lake, name: str) -> lakebed.Table:
    table = lake.create_table(name, SCHEMA)
    for first in range(FILES):
        ids = range(first, ROWS * FILES, FILES)
        table.ingest(pa.table({"id": list(ids), "name": [f"n{n}" for n in ids]}))
    return table


def is_whole(table: lakebed.Table) -> bool:
    """Whether one file has all rows."""
    explained = table.explain()
    ids = table.query().read_all()["id"].to_pylist()
    return ids == list(range(ROWS * FILES)) and explained.files == 1


def test_a_compaction_of_a_lake_is_helped(tmp_path: Path, asked: Asked) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        for name in ("one", "two"):  # the helper stays for the next
            table = fill(lake, name)
            table.compact()
            assert is_whole(table)
            assert all(isinstance(answer, RangeMerged) for answer in asked)
        assert len(asked) >= 2
        assert not lake.fsck(deep=True).findings
    assert not list((tmp_path / "lake").rglob("ranges"))


@pytest.mark.parametrize("kind", ["a bucket", "an instance"])
def test_objects_in_s3_are_found_by_helpers(
    kind: str,
    server: S3Server,  # noqa: F811 - the fixture
    instance: InstanceResources,  # noqa: F811 - the fixture
    tmp_path: Path,
    asked: Asked,
) -> None:
    place: str = str(tmp_path / "lake")
    objects: str | None = f"s3://{BUCKET}/{server.new_prefix()}"
    if kind == "an instance":
        place, objects = f"aws:{instance.instance}", None
    with lakebed.connect(place, objects=objects) as lake:
        table = fill(lake, "t")
        table.compact()
        assert is_whole(table)
    assert asked
    assert all(isinstance(answer, RangeMerged) for answer in asked)


def test_a_helper_that_is_killed_is_made_up_for_and_another_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged, begun = Helper.merged, []

    def killed(self: Helper, task: MergeTask, wanted: RangeTask) -> RangeMerged | RangeFailed:
        begun.append(self)
        if len(begun) == 1:
            self._process.kill()
        return merged(self, task, wanted)

    monkeypatch.setattr(Helper, "merged", killed)
    with lakebed.connect(tmp_path / "lake") as lake:
        for number in range(TABLES_MAX):  # until the one that comes is there in time to help
            table = fill(lake, f"t{number}")
            table.compact()
            assert is_whole(table)
            if len(set(begun)) == 2:
                break
        assert len(set(begun)) == 2


@pytest.mark.parametrize(
    "code",
    [
        "",
        "import time; time.sleep(60)",
        "print('ready', flush=True)",
        "print('ready', flush=True); import time; time.sleep(60)",
        "print('no', flush=True)",
        "print('ready', flush=True); input(); input(); print('{}', flush=True); input()",
    ],
    ids=[
        "ends",
        "hangs",
        "ends when asked",
        "hangs when asked",
        "is not ready",
        "answers something else",
    ],
)
def test_helpers_that_fail_are_not_started_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    started: list[Sequence[str]] = []
    init = Helper.__init__

    def wrong(self: Helper, command: Sequence[str]) -> None:
        started.append(command)
        init(self, (sys.executable, "-c", code))

    monkeypatch.setattr(Helper, "__init__", wrong)
    monkeypatch.setattr(helping, "START_SECONDS_MAX", 0.5)
    monkeypatch.setattr(helping, "RANGE_SECONDS_MAX", 0.5)
    with lakebed.connect(tmp_path / "lake") as lake:
        for n in range(5):
            table = fill(lake, f"t{n}")
            table.compact()
            assert is_whole(table)
    assert 1 <= len(started) <= helping.FAILURES_MAX


def test_nobody_else_finds_objects_in_a_store_that_a_program_made(tmp_path: Path) -> None:
    objects = MemoryObjectStore(SystemClock())
    with lakebed.connect(tmp_path / "lake", objects=objects) as lake:
        table = fill(lake, "t")
        table.compact()
        assert is_whole(table)
    assert merge_helpers(None, tmp_path, 3) is None
    assert merge_helpers(ObjectsLocation(str(tmp_path)), tmp_path, 0) is None


HELPED = """
import msgspec, sys, time
from pathlib import Path
from lakebed import schema_of
from lakebed.bootstrap.merge_process import merge_helpers
from lakebed.bootstrap.object_locations import ObjectsLocation
from lakebed.model.files import FilePart, StoredFile
from lakebed.model.ranges import EVERYTHING
from lakebed.sorted_files.merging.range_messages import RowGroupsRead, RangeTask, merge_task

root, is_busy = Path(sys.argv[1]), sys.argv[2] == "busy"
schema = schema_of(row_keys={"k": "int64"}, values={})
task = merge_task(schema, None, 1, value_statistics=False)
part = FilePart(StoredFile(bytes(16), 200, 100, 0, 0), "never", EVERYTHING, 1)
task = msgspec.structs.replace(task, reads=(RowGroupsRead(part, None),), memory=1 << 28)

def ask(helper):
    if is_busy:
        helper._say(task)
        helper._say(RangeTask(EVERYTHING, "ranges/0"))
        time.sleep(1)
    print(helper._process.pid, flush=True)

merge_helpers(ObjectsLocation(str(root)), root / "ranges", 1).each(ask)
time.sleep(60)
"""


@pytest.mark.parametrize("work", ["idle", "busy"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "asked to stop"])
def test_a_helper_ends_with_the_process_that_it_helps(
    tmp_path: Path, how: signal.Signals, work: str
) -> None:
    LocalObjectStore(tmp_path, SystemClock())
    os.mkfifo(tmp_path / "objects" / "never")  # whoever reads it waits
    command = [sys.executable, "-c", HELPED, str(tmp_path), work]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        helper = int(process.stdout.readline())
        assert is_alive(helper)
        process.send_signal(how)
        process.wait()
    wait_for(lambda: not is_alive(helper))


def test_closing_ends_helpers_and_leaves_no_thread(tmp_path: Path) -> None:
    LocalObjectStore(tmp_path, SystemClock())
    helpers = merge_helpers(ObjectsLocation(str(tmp_path)), tmp_path / "ranges", 2)
    assert isinstance(helpers, MergeHelpers)
    found: list[int] = []
    helpers.each(lambda helper: found.append(helper._process.pid))
    wait_for(lambda: len(found) == 2)
    begun = time.monotonic()
    helpers.close()
    helpers.close()
    assert time.monotonic() - begun < helping.START_SECONDS_MAX / 2, "nobody waits for a line"
    assert not any(map(is_alive, found))
    helpers = merge_helpers(ObjectsLocation(str(tmp_path)), tmp_path / "ranges", 1)
    assert isinstance(helpers, MergeHelpers)
    helpers.each(lambda _: None)  # closed while it starts
    helpers.close()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or " Z " not in state.read_text()


def wait_for(is_so: object) -> None:
    end = time.monotonic() + 30
    while not is_so():  # type: ignore[operator]  # a function
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)
