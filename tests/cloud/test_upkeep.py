"""What schedules do to an instance that nobody uses: nothing."""

import pytest

from tests.cloud.instance import RunningInstance
from tests.dsl.table_rows import SCHEMA, rows

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""


def alarms_on(instance: RunningInstance) -> set[str]:
    """The alarms that are on: some that earlier stories set off never end in the emulator, since
    nothing is counted any more."""
    return {name for name, state in instance.cloud.alarms().items() if state == "ALARM"}


@pytest.mark.slow
def test_schedules_leave_an_idle_instance_alone_for_an_hour(instance: RunningInstance) -> None:
    with instance.lake() as lake:
        lake.create_table("quiet", SCHEMA).ingest(rows(10))
        instance.cloud.fire()
        alarmed = alarms_on(instance)
        entries = lake.table("quiet").log().entries
        instance.cloud.advance(3_600)
        assert lake.table("quiet").log().entries == entries
        assert not instance.cloud.failures
        assert alarms_on(instance) <= alarmed
