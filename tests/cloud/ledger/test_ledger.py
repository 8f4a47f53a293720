"""The usage ledger of a deployed instance: whose work what was, what it cost, and budgets."""

import json

import pytest

from lakebed.costs.prices import packaged_prices
from lakebed.errors import InvalidError
from lakebed.ports.paying.usage_ledger import LedgerEntry, hour_of
from lakebed.table import Table
from tests.cloud.deployed_stage import DeployedStage
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.ledger.exact_ledger import exact_ledger, ledger_writes
from tests.cloud.users import put, send, stop_tasks, until
from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import SCHEMA, rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_work_of_functions_and_tasks_is_that_of_its_table(instance: RunningInstance) -> None:
    with instance.lake() as lake, exact_ledger(instance, lake):
        story = LakeStory(DeployedStage(instance, lake))
        before = ledger_writes(instance)
        story.given_table("paid", compaction_strategy="basic", job_files_max=3)
        for n in range(3):
            story.when_files_are_sent("paid", rows(60, seed=n), job=f"sent {n}")
        story.when_messages_are_ingested()
        story.when_compacted()
        story.when_queries_are_answered()
        stop_tasks(instance)
        found = lake.costs("paid")
        counts = {line.name: line.counts for line in found.lines}
        assert counts["ingest"]["rows_in"] == 180
        assert counts["compaction"]["rows_merged"] == 180
        assert counts["compaction"]["fargate_vcpu_seconds"] > 0
        assert counts["compaction-creation"]["lambda_runs"] >= 1
        assert 0 < counts["compaction-creation"]["life_seconds"] < 120
        assert counts["commits" if "commits" in counts else "ingest"]["dynamodb_write_units"] > 0
        assert found.dollars > 0
        whole = lake.costs()
        runs = sum(line.counts.get("lambda_runs", 0) for line in whole.lines)
        jobs = sum(1 + task.jobs for task in lake.tasks(limit=1_000))
        assert 0 < ledger_writes(instance) - before <= runs + jobs, "one for each unit at most"
        assert {"paid", "-"} <= {line.name for line in whole.lines}


def test_a_spent_budget_refuses_queries_of_users_and_not_upkeep(instance: RunningInstance) -> None:
    with instance.lake() as lake:
        table = lake.create_table("limited", SCHEMA)
        table.ingest(rows(10))
        table.change_settings(budget_dollars=1, budget_stops=True)
        ledger = lake._given_app.paying.ledger
        assert ledger is not None
        counts = {"s3_put": 2 / packaged_prices().prices["s3_put"]}
        hour = hour_of(instance.cloud.clock.now())
        ledger.add(LedgerEntry(table=table._opened.id, hour=hour, kind="ingest", counts=counts))
        asked = {"table": "limited", "ranges": [{}]}
        answer = instance.cloud.invoke(f"lakebed-{INSTANCE}-query-answer", asked)
        assert "budget of this month" in json.dumps(answer.value)
        with pytest.raises(InvalidError, match="budget of this month"):
            table.query()
        message = {"table": "limited", "id": "limited", "files": [put(instance, "l", rows(5))]}
        send(instance, "ingest", json.dumps(message), message_group="limited")
        instance.cloud.fire(f"lakebed-{INSTANCE}-ingest-tasks")
        until(instance, "it is refused", lambda: is_refused(table))
        instance.cloud.fire(f"lakebed-{INSTANCE}-sweep")
        assert not instance.cloud.failures
    stop_tasks(instance)


def is_refused(table: Table) -> bool:
    reports = table.jobs(job="limited")
    return bool(reports) and "budget of this month" in reports[-1].reason
