"""Settings of an instance that say who is told of alarms."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lakebed.errors import InvalidError

_REGION = r"[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}"
_WORD = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_MAIL = rf"(?=[^@]{{1,64}}@){_WORD}(\.{_WORD})*@({_LABEL}\.)+[A-Za-z]{_LABEL}"

AlarmMail = Annotated[
    str,
    Meta(
        max_length=254,
        pattern=rf"\A({_MAIL})?\Z",
        description="An email address that gets each alarm. AWS writes to it once, and"
        " sends nothing more until its owner confirms. None: subscribe by hand to the topic"
        " `lakebed-INSTANCE-alarms`.",
    ),
]
AlarmTopic = Annotated[
    str,
    Meta(
        pattern=rf"\A(arn:aws[a-z-]*:sns:{_REGION}:[0-9]{{12}}:[A-Za-z0-9_-]{{1,256}})?\Z",
        description="A topic of SNS of the instance's region, by its ARN, that gets each alarm"
        " in place of the instance's own. Its policy must let CloudWatch publish.",
    ),
]


def check_alarms(*, mail: str, topic_arn: str) -> None:
    """Check that one setting at the most says who is told.

    Raises:
        InvalidError: both do.
    """
    if mail and topic_arn:
        raise InvalidError(
            "two settings say who is told of alarms",
            alarm_mail=mail,
            alarm_topic_arn=topic_arn,
            hint="subscribe the address to that topic, and leave `alarm_mail` out",
        )
