"""What is told of a table sets its alarm off, however few files its leaves may have."""

import json

import pytest

from lakebed.errors import TableBusyError
from lakebed.model.jobs import COMPACTION_CREATION
from lakebed.observe.metrics import METRICS
from tests.dsl.memory_instance import MemoryInstance


@pytest.mark.parametrize("files_max", [4, 5, 10])
def test_a_leaf_that_is_full_sets_the_alarm_off_whatever_its_table_allows(
    instance: MemoryInstance, capsys: pytest.CaptureFixture[str], files_max: int
) -> None:
    (metric,) = [one for one in METRICS if one.name == "leaf_files_percent"]
    assert metric.alarm is not None
    instance.given_table("small", leaf_files_max=files_max)
    told = []
    for number in range(files_max):
        instance.given_rows("small", 10, job=f"job-{number}")
        instance.ticks(COMPACTION_CREATION).run(at=str(number))
        instance.when_worked(COMPACTION_CREATION, instance.handler_of(COMPACTION_CREATION))
        instance.clock.advance(3_600)
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        told += [line for line in lines if line.get("event") == "table_measured"]
    with pytest.raises(TableBusyError):
        instance.given_rows("small", 10, job="one-more")
    assert told[0]["leaf_files_percent"] == 100 // files_max < metric.alarm.threshold
    assert told[-1]["leaf_files_percent"] == 100 > metric.alarm.threshold
    assert told[-1]["leaf_files_most"] == files_max
