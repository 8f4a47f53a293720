"""Who hears of alarms and who may do what is refused where it could not be deployed."""

import pytest

from lakebed.config.alarm_settings import listeners_of
from lakebed.config.instance import instance_settings
from lakebed.config.people.role_settings import PERSON_ROLES, principals_of
from lakebed.errors import InvalidError

QUEUE = "arn:aws:sqs:eu-west-1:123456789012:notices"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:operators"
KEY = "arn:aws:kms:us-east-1:123456789012:key/0f1e2d3c"
ANN = "arn:aws:iam::123456789012:user/team/ann"
ROBOT = "arn:aws:iam::210987654321:role/aws-reserved/sso.amazonaws.com/robot"


def test_listeners_are_of_three_kinds_and_an_address_is_told_once() -> None:
    found = instance_settings(
        {
            "alarm_mail": "ops@example.org",
            "notices_mail": "ops@example.org,night@example.org",
            "notices_https": "https://hooks.example.org/a?key=1",
            "notices_queue": QUEUE,
        }
    )
    assert listeners_of(found) == [
        ("email", "ops@example.org"),
        ("email", "night@example.org"),
        ("https", "https://hooks.example.org/a?key=1"),
        ("sqs", QUEUE),
    ]
    assert listeners_of(instance_settings({})) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"notices_mail": "ops@example.org, night@example.org"}, "notices_mail"),
        ({"notices_mail": "ops@example.org,ops@example.org"}, "each once"),
        ({"notices_mail": ",".join(f"o{n}@example.org" for n in range(21))}, "at most 20"),
        ({"notices_https": "http://hooks.example.org"}, "notices_https"),
        ({"notices_https": "https://me:secret@hooks.example.org"}, "notices_https"),
        ({"notices_https": "https://localhost/x"}, "notices_https"),
        ({"notices_queue": f"{QUEUE}.fifo"}, "notices_queue"),
        ({"notices_queue": QUEUE, "key_arn": KEY}, "different regions"),
        ({"notices_queue": QUEUE, "alarm_topic_arn": TOPIC}, "two settings say who is told"),
        ({"notices_mail": "a@example.org", "alarm_topic_arn": TOPIC}, "subscribe these to that"),
        ({"people_reader": "ann"}, "people_reader"),
        ({"people_reader": "*"}, "people_reader"),
        ({"people_reader": "arn:aws:iam::123456789012:user/*"}, "people_reader"),
        ({"people_reader": "arn:aws:sts::123456789012:assumed-role/a/b"}, "people_reader"),
        ({"people_reader": "arn:aws:iam::123456789012:group/all"}, "people_reader"),
        ({"people_admin": f"{ANN},{ANN}"}, "each once"),
        ({"people_admin": f"{ANN},{ANN.replace('aws', 'aws-cn')}"}, "several partitions"),
        (
            {"people_sender": ",".join(f"{ANN}{n}{'x' * 100}" for n in range(20))},
            "too long for a role's trust policy",
        ),
        ({"people_owner": ANN}, "people_"),
    ],
)
def test_what_could_not_be_deployed_is_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidError, match=words):
        instance_settings(settings)


def test_people_are_named_by_role() -> None:
    found = instance_settings({"people_reader": f"{ANN},{ROBOT}", "people_direct": "true"})
    assert principals_of(found, "reader") == [ANN, ROBOT]
    assert found.people_direct
    assert [role for role in PERSON_ROLES if principals_of(found, role)] == ["reader"]
