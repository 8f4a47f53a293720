"""What a release does with a query for what a newer one wrote: it rejected it once, for good; since
there is a gate it lets the query wait for the upgrade."""

import json
from pathlib import Path

import pytest

from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.model.formats import NEWEST
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.test_life import deployed
from tests.cloud.test_query import reports
from tests.cloud.upgrades.two_releases import (
    BEFORE_COMMIT,
    CREATE,
    NEEDS_HISTORY,
    TABLE,
    UNGATED_COMMIT,
    command_of,
    release_of,
    synthesized,
)
from tests.cloud.users import send, waiting
from tests.dsl.table_rows import rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_500),
    NEEDS_HISTORY,
]

UPGRADED_SECONDS = 3_600
"""Longer than a message waits for an upgrade at first."""


def ask(instance: RunningInstance, job: str) -> None:
    """Send a query for all rows."""
    message = {"id": job, "table": TABLE, "ranges": [{}]}
    send(instance, "query", json.dumps(message), message_group=job)


def events(instance: RunningInstance, job: str) -> list[str]:
    """What became of a query. One that cannot read the log of a table reports it of none."""
    return [report.event for of in (TABLE, None) for report in reports(instance, of, job)]


@pytest.mark.parametrize(
    ("commit", "is_rejected"), [(UNGATED_COMMIT, True), (BEFORE_COMMIT, False)]
)
def test_a_query_that_needs_a_newer_release_waits_for_it_and_is_not_rejected_any_more(
    commit: str, tmp_path: Path, *, is_rejected: bool
) -> None:
    project, folder = release_of(commit, tmp_path / "project"), tmp_path / "cloud"
    with deployed(synthesized(project, tmp_path / "older"), folder) as instance:
        command_of(project, *CREATE)
        with instance.lake() as lake:
            lake.table(TABLE).ingest(rows(150))
        ask(instance, "plain")
        instance.cloud.settle()
        assert "finished" in events(instance, "plain")
        DynamoTableRegistry(amazon_clients(), f"lakebed-{INSTANCE}-registry").raise_formats(NEWEST)
        with instance.lake() as lake:
            gone = lake.table(TABLE).delete(ranges={"id": ("a", None)})
            assert gone.rows, "an entry of a form of its own"
        ask(instance, "newer")
        instance.cloud.settle()
        assert (waiting(instance, "query"), waiting(instance, "query-dead")) == (
            (0, 1) if is_rejected else (1, 0)
        )
        assert ("rejected" in events(instance, "newer")) == is_rejected
    here = Path(__file__).parents[3]
    with deployed(synthesized(here, tmp_path / "newer"), folder) as instance:
        instance.cloud.advance(UPGRADED_SECONDS, schedules=False)
        instance.cloud.settle()
        assert ("finished" in events(instance, "newer")) == (not is_rejected)
        assert waiting(instance, "query") == 0
        ask(instance, "again")
        instance.cloud.settle()
        assert "finished" in events(instance, "again")
