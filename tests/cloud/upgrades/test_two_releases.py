"""A new release is deployed stack by stack under load, taken back, deployed again and finished: no
job is lost or done twice, none becomes a dead letter, and the rows stay."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.model.formats import NEWEST, Formats
from lakebed.model.releases import BEFORE, THIS
from lakebed.ports.processes import SILENT_SECONDS
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.test_life import deployed
from tests.cloud.upgrades.two_releases import (
    BEFORE_COMMIT,
    CREATE,
    NEEDS_HISTORY,
    TABLE,
    command_of,
    mixed,
    release_of,
    stacks_of,
    synthesized,
    with_needed,
)
from tests.cloud.users import put, send, waiting
from tests.dsl.table_rows import rows, same_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3_000),
    NEEDS_HISTORY,
]

MIXED_SECONDS = 1_800
"""For so long, in the cloud's time, each mixture works."""
QUEUES = ("ingest", "compaction", "splitting", "garbage", "commits")


class Releases:
    """Assemblies of two releases, and of mixtures of their stacks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.project_before = release_of(BEFORE_COMMIT, folder / "project")
        self.before = synthesized(self.project_before, folder / "before")
        self.after = synthesized(Path(__file__).parents[3], folder / "after")

    def with_new(self, name: str, *parts: str) -> Path:
        """Return an assembly where stacks whose names hold a part are new, with all they need."""
        wanted = {id_ for id_ in stacks_of(self.after) if any(part in id_ for part in parts)}
        assert wanted, parts
        upgraded = with_needed(self.after, wanted)
        assert upgraded < set(stacks_of(self.after)), "some are as before"
        return mixed(self.before, self.after, upgraded, self._folder / name)


class Load:
    """What users do meanwhile. Each round brings rows by each way, and asks for all of them."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases
        self._given: list[pa.Table] = []
        self._ahead = 0.0

    def round(self, instance: RunningInstance) -> None:
        """Let a deployment work under load for half an hour; all must be well afterwards."""
        cloud = instance.cloud
        cloud.advance(max(0.0, self._ahead - cloud.clock.ahead_seconds), schedules=False)
        number = len(self._given)
        for way, bring in (("queue", self._send), ("library", self._ingest)):
            given = rows(150, seed=number + len(way))
            bring(instance, f"{way}-{number}", given)
            bring(instance, f"{way}-{number}", given)  # a sender that got no answer
            self._given.append(given)
        cloud.advance(MIXED_SECONDS)
        assert cloud.finish_tasks(seconds_max=240)
        self._ahead = cloud.clock.ahead_seconds
        assert not cloud.failures, list(cloud.failures)
        for queue in QUEUES:
            assert waiting(instance, f"{queue}-dead") == 0, queue
        assert waiting(instance, "ingest") == 0
        self.check(instance)

    def check(self, instance: RunningInstance) -> None:
        """Compare the table with what was given, as a program of each release sees it."""
        with instance.lake() as lake:
            assert same_rows(lake.table(TABLE), *self._given)
        told = self.older("--at", INSTANCE, "query", TABLE, "--count")
        assert told.strip() == str(sum(map(len, self._given)))

    def older(self, *arguments: str) -> str:
        """Return what the command of the release before answers."""
        return command_of(self._releases.project_before, *arguments)

    def _send(self, instance: RunningInstance, job: str, given: pa.Table) -> None:
        url = put(instance, f"{job}.parquet", given)
        message = {"id": job, "table": TABLE, "files": [url]}
        send(instance, "ingest", json.dumps(message), message_group=job)

    def _ingest(self, instance: RunningInstance, job: str, given: pa.Table) -> None:
        with instance.lake() as lake:
            lake.table(TABLE).ingest(given, job=job)


def gate(_: RunningInstance) -> Formats:
    """Return what may be written to the lake."""
    return DynamoTableRegistry(amazon_clients(), f"lakebed-{INSTANCE}-registry").formats()


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return Releases(tmp_path_factory.mktemp("releases"))


def test_a_release_replaces_the_one_before_under_load(releases: Releases, tmp_path: Path) -> None:
    folder, load = tmp_path / "cloud", Load(releases)
    functions_first = releases.with_new("functions", "Splitting", "Garbage", "Snapshots", "Query")
    tasks_first = releases.with_new("tasks", "Compaction", "Ingest")

    def while_deployed(assembly: Path, do: Callable[[RunningInstance], None]) -> None:
        with deployed(assembly, folder) as instance:
            do(instance)

    def begin(instance: RunningInstance) -> None:
        load.older(*CREATE)
        load.round(instance)
        assert gate(instance) == BEFORE.formats

    while_deployed(releases.before, begin)
    for assembly in (functions_first, releases.before, tasks_first, releases.before):
        while_deployed(assembly, load.round)

    def finish(instance: RunningInstance) -> None:
        load.round(instance)
        assert gate(instance) == BEFORE.formats, "nothing newer is written before it may"
        instance.cloud.advance(SILENT_SECONDS + 60, schedules=False)
        with instance.lake() as lake:
            status = lake.finish_upgrade()
            assert status.deployed == THIS.name
            assert status.is_finished()
        assert gate(instance) == NEWEST

    while_deployed(releases.after, finish)

    def after(instance: RunningInstance) -> None:
        with instance.lake() as lake:
            table = lake.table(TABLE)
            table.ingest(rows(50, seed=99), job="after")
            found = [one.code for one in lake.fsck(deep=True).findings]
            assert set(found) <= {"object-pending"}, "tasks that were stopped leave such behind"
            assert lake.status(TABLE)[0].leaves > 1, "it was split and compacted on the way"

    while_deployed(releases.after, after)
