"""A dead letter calls an operator, whichever queue it is of."""

import pytest

from lakebed.config.job_queues import JOB_QUEUES, TICK_QUEUES
from tests.cloud.instance import INSTANCE, RunningInstance

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""

KINDS = [shape.kind for shape in (*JOB_QUEUES, *TICK_QUEUES)]
PUBLISHED_SECONDS = 360


def states(instance: RunningInstance) -> set[str]:
    """Return the states in which the alarms of dead letters are, once all figures are told."""
    instance.cloud.advance(PUBLISHED_SECONDS, schedules=False)
    alarms = instance.cloud.alarms()
    return {alarms[f"lakebed-{INSTANCE}-{kind}-dead-letters"] for kind in KINDS}


def test_dead_letters_of_each_queue_set_off_its_alarm_until_they_are_gone(
    instance: RunningInstance,
) -> None:
    sqs = instance.cloud.client("sqs")
    for kind in KINDS:
        url = sqs.get_queue_url(QueueName=f"lakebed-{INSTANCE}-{kind}-dead.fifo")["QueueUrl"]
        sqs.send_message(
            QueueUrl=url,
            MessageBody="a letter",
            MessageGroupId="one",
            MessageDeduplicationId="one",
        )
    assert states(instance) == {"ALARM"}
    instance.forget()
    assert states(instance) == {"OK"}
