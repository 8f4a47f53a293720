"""Settings of an instance: who hears of alarms and of ends of jobs, and what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from lakebed.config.settings import check_listed, named_in
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.config.instance import InstanceSettings

JOB_EVENT_SOURCE, JOB_EVENT_TYPE = "lakebed.job", "Job ended"
"""Source and type of the EventBridge events that say how a job ended."""
LISTENERS_MAX = 20
"""Most listeners of one kind. Each alarm is delivered to all of them."""

_REGION = r"[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}"
_WORD = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_MAIL = rf"(?=[^@,]{{1,64}}@){_WORD}(\.{_WORD})*@({_LABEL}\.)+[A-Za-z]{_LABEL}"
_HTTPS = rf"https://({_LABEL}\.)+[A-Za-z]{_LABEL}(:[0-9]{{1,5}})?(/[A-Za-z0-9._~%/?&=+:@!$*-]*)?"
_QUEUE = rf"arn:aws[a-z-]*:sqs:{_REGION}:[0-9]{{12}}:[A-Za-z0-9_-]{{1,80}}"

AlarmMail = Annotated[
    str,
    Meta(
        max_length=254,
        pattern=rf"\A({_MAIL})?\Z",
        description="An email address that gets each alarm. `notices_mail` takes several.",
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
NoticesMail = Annotated[
    str,
    Meta(
        pattern=rf"\A({_MAIL}(,{_MAIL})*)?\Z",
        description="Email addresses that get each alarm when it goes off and when it is over, with"
        " commas between. AWS writes to each once, and sends nothing more until its owner"
        " confirms. None here and in the settings beside: subscribe by hand to the topic"
        " `lakebed-INSTANCE-alarms`.",
    ),
]
NoticesHttps = Annotated[
    str,
    Meta(
        pattern=rf"\A({_HTTPS}(,{_HTTPS})*)?\Z",
        description="Addresses `https://HOST/PATH`, with commas between, that get each alarm when"
        " it goes off and when it is over. Each has to confirm, as SNS asks. Who may read the"
        " template reads them.",
    ),
]
NoticesQueue = Annotated[
    str,
    Meta(
        pattern=rf"\A({_QUEUE}(,{_QUEUE})*)?\Z",
        description="Queues of SQS of the instance's region, by their ARNs, with commas between,"
        " that get each alarm when it goes off and when it is over. None may end in `.fifo`. The"
        " policy of each must let the topic send.",
    ),
]
JobEvents = Annotated[
    bool,
    Meta(
        description="Whether the end of each job that users asked for becomes an event of"
        " EventBridge, from `lakebed.job`, on the account's default bus. Each costs a run of a"
        " function and a millionth of a dollar. Before `false` is deployed again, delete the stack"
        " `lakebed-INSTANCE-job-events`."
    ),
]
TableMetrics = Annotated[
    bool,
    Meta(
        description="Whether metrics of rows and failures are kept for each table as well. Each"
        " table that changes is then paid for (`lakebed explain cost`). Events name their table"
        " in either case."
    ),
]


def listeners_of(settings: InstanceSettings) -> list[tuple[str, str]]:
    """Return whom the instance's own topic notifies: protocol of SNS, and address or ARN."""
    mails = dict.fromkeys([settings.alarm_mail, *named_in(settings.notices_mail)])
    return [
        *(("email", mail) for mail in mails if mail),
        *(("https", url) for url in named_in(settings.notices_https)),
        *(("sqs", arn) for arn in named_in(settings.notices_queue)),
    ]


def check_alarms(settings: InstanceSettings) -> None:
    """Check that the settings of alarms fit together.

    Raises:
        InvalidError: alarms go to a topic of the deployer's, and listeners are named for the
            instance's own; too many listeners, or one twice.
    """
    for name in ("notices_mail", "notices_https", "notices_queue"):
        check_listed(name, getattr(settings, name), items_max=LISTENERS_MAX)
    listeners = listeners_of(settings)
    if listeners and settings.alarm_topic_arn:
        raise InvalidError(
            "two settings say who is told of alarms",
            alarm_topic_arn=settings.alarm_topic_arn,
            listeners=", ".join(address for _, address in listeners)[:200],
            hint="subscribe these to that topic, and leave `alarm_mail` out, and `notices_`...",
        )
