"""A new release is deployed stack by stack under load, taken back, deployed again and finished: no
job is lost or done twice, none becomes a dead letter, and the rows stay."""

from pathlib import Path

import pytest

from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.model.formats import NEWEST, Formats
from lakebed.model.releases import BEFORE, THIS
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.test_life import deployed
from tests.cloud.upgrades.two_releases import NEEDS_HISTORY, TABLE
from tests.cloud.upgrades.upgrade_story import Load, Releases, upgrade
from tests.cloud.users import waiting
from tests.dsl.table_rows import rows, same_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3_000),
    NEEDS_HISTORY,
]

QUEUES = ("ingest", "compaction", "splitting", "garbage", "commits")


def gate(_: RunningInstance) -> Formats | None:
    """Return what may be written to the lake."""
    return DynamoTableRegistry(amazon_clients(), f"lakebed-{INSTANCE}-registry").formats()


def check(instance: RunningInstance, load: Load) -> None:
    """All is well, and the table holds what was given, as a program of each release sees it."""
    assert not instance.cloud.failures, list(instance.cloud.failures)
    for queue in QUEUES:
        assert waiting(instance, f"{queue}-dead") == 0, queue
    assert waiting(instance, "ingest") == 0
    assert gate(instance) == BEFORE.formats, "nothing newer is written before it may"
    with instance.lake() as lake:
        assert same_rows(lake.table(TABLE), *load.given.values())
    assert load.lost(instance) == []
    answer = load.older("--at", INSTANCE, "query", TABLE, "--count")
    assert answer.strip() == str(sum(map(len, load.given.values())))


def test_a_release_replaces_the_one_before_under_load(tmp_path: Path) -> None:
    folder, releases = tmp_path / "cloud", Releases(tmp_path / "releases")
    load = Load(releases)
    upgrade(releases, load, folder, look=lambda instance: check(instance, load))
    with deployed(releases.after, folder) as instance:
        assert gate(instance) == NEWEST
        with instance.lake() as lake:
            status = lake.upgrade_status()
            assert status.deployed == THIS.name
            assert status.is_finished()
            table = lake.table(TABLE)
            table.ingest(rows(50, seed=99), job="after")
            found = [one.code for one in lake.fsck(deep=True).findings]
            assert set(found) <= {"object-pending"}, "tasks that were stopped leave such behind"
            assert lake.status(TABLE)[0].leaves > 1, "it was split and compacted on the way"
