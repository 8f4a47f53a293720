"""Schedule, trigger, queue, handler: leaves of a real table are split by what is deployed."""

import pytest

from lakebed.config.job_queues import SPLITTING as SHAPE
from lakebed.lake import Lake
from lakebed.table import Table
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.operators import spoiled
from tests.cloud.users import waiting
from tests.dsl.table_rows import SCHEMA, rows, same_rows

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""

SPLITTING = f"lakebed-{INSTANCE}-splitting"
TRIGGER = f"{SPLITTING}-trigger"


def table_with(lake: Lake, name: str, count: int) -> Table:
    table = lake.create_table(name, SCHEMA, settings={"leaf_rows_max": 100})
    table.ingest(rows(count))
    return table


def leaves(lake: Lake, name: str) -> int:
    return lake.status(name)[0].leaves


def test_a_bad_table_holds_up_nobody_and_its_message_is_redriven_when_it_is_mended(
    instance: RunningInstance,
) -> None:
    with instance.lake() as lake:
        bad = table_with(lake, "bad", 700)
        for number in range(4):
            table_with(lake, f"good{number}", 300)
        with spoiled(instance, bad):
            instance.cloud.fire(SPLITTING)
            assert all(leaves(lake, f"good{number}") > 1 for number in range(4))
            seconds = SHAPE.hidden_seconds * SHAPE.receives_max
            instance.cloud.advance(seconds, schedules=False)
            assert waiting(instance, "splitting-dead") == 1
            assert instance.cloud.alarms()[f"{SPLITTING}-dead-letters"] == "ALARM"
        assert leaves(lake, "bad") == 1
        (letter,) = lake.show_dead_letters(queues=["splitting"])
        assert letter.table == "bad"
        assert letter.receives >= SHAPE.receives_max
        assert lake.redrive(queues=["splitting"], table="bad").sent == 1
        instance.cloud.settle()
        assert leaves(lake, "bad") > 1
        assert same_rows(bad, rows(700))
        instance.cloud.advance(360, schedules=False)
        assert instance.cloud.alarms()[f"{SPLITTING}-dead-letters"] == "OK"
