"""A dead letter calls an operator, whichever queue it is of."""

import pytest

from lakebed.config.job_queues import JOB_QUEUES, TICK_QUEUES
from tests.cloud.instance import INSTANCE, RunningInstance

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""

KINDS = [shape.kind for shape in (*JOB_QUEUES, *TICK_QUEUES)]
PUBLISHED_SECONDS = 360


def ringing(instance: RunningInstance) -> list[str]:
    """Return the kinds of queues whose alarms of dead letters are set off, once all figures are
    published. The others are OK."""
    instance.cloud.advance(PUBLISHED_SECONDS, schedules=False)
    alarms = instance.cloud.alarms()
    states = {kind: alarms[f"lakebed-{INSTANCE}-{kind}-dead-letters"] for kind in KINDS}
    assert set(states.values()) <= {"OK", "ALARM"}
    return [kind for kind, state in states.items() if state == "ALARM"]


def send_letter(instance: RunningInstance, kind: str) -> None:
    sqs = instance.cloud.client("sqs")
    url = sqs.get_queue_url(QueueName=f"lakebed-{INSTANCE}-{kind}-dead.fifo")["QueueUrl"]
    sqs.send_message(
        QueueUrl=url,
        MessageBody="a letter",
        MessageGroupId="one",
        MessageDeduplicationId=str(instance.cloud.clock.now()),
    )


def test_a_letter_in_one_queue_sets_off_its_alarm_and_no_other(instance: RunningInstance) -> None:
    for kind in (KINDS[0], KINDS[-1]):
        assert ringing(instance) == []
        send_letter(instance, kind)
        assert ringing(instance) == [kind]
        instance.forget()


def test_dead_letters_of_each_queue_set_off_its_alarm_until_they_are_gone(
    instance: RunningInstance,
) -> None:
    for kind in KINDS:
        send_letter(instance, kind)
    assert ringing(instance) == KINDS
    instance.forget()
    assert ringing(instance) == []
