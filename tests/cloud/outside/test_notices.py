"""An alarm reaches who listens, with what is wrong, since when, the page and a command."""

import json
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner

from lakebed.cli.main import program
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, NOTICES, RunningInstance
from tests.cloud.outside.listeners import heard, listening
from tests.cloud.users import send

NOTICED_SECONDS_MAX = 120
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:lakebed-{INSTANCE}-alarms"
ALARM = f"lakebed-{INSTANCE}-query-dead-letters"


def notices(instance: RunningInstance, url: str) -> list[dict[str, Any]]:
    """What the queue was sent of one alarm."""
    told = [json.loads(notice["Message"]) for notice in heard(instance, url)]
    return [one for one in told if one["AlarmName"] == ALARM]


@pytest.mark.timeout(300)
def test_a_dead_letter_is_a_notice_within_two_minutes_and_so_is_its_end(
    instance: RunningInstance,
) -> None:
    cloud = instance.cloud
    url = listening(instance, NOTICES, service="sns", source=TOPIC)
    cloud.advance(600, schedules=False)
    heard(instance, url)
    began = cloud.clock.seconds()
    send(instance, "query", '{"id": "q", "table": "nowhere", "ranges": [{}]}', message_group="one")
    cloud.settle()
    found: list[dict[str, Any]] = notices(instance, url)
    while not found and cloud.clock.seconds() - began < NOTICED_SECONDS_MAX:
        cloud.advance(20, schedules=False)
        found = notices(instance, url)
    assert cloud.clock.seconds() - began <= NOTICED_SECONDS_MAX
    (notice,) = found
    assert notice["NewStateValue"] == "ALARM"
    since = datetime.fromisoformat(notice["StateChangeTime"]).timestamp()
    assert since == pytest.approx(began, abs=NOTICED_SECONDS_MAX)
    text = notice["AlarmDescription"]
    assert text.startswith("messages of query were given up; run `")
    assert text.endswith("see docs/operate/dead-letters.md")
    command = text.split("`")[1].split()
    assert command[0] == "lakebed"
    shown = CliRunner().invoke(program, command[1:], prog_name="lakebed")
    assert shown.exit_code == 0, shown.output
    assert "no such table" in shown.stdout

    dead = f"lakebed-{INSTANCE}-query-dead.fifo"
    sqs = cloud.client("sqs")
    sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName=dead)["QueueUrl"])
    cloud.advance(600, schedules=False)
    assert [one["NewStateValue"] for one in notices(instance, url)] == ["OK"]
