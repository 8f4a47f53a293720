"""Checks what tasks that work on feeds may reach, by settings of an instance: queues, secrets,
ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from lakebed.config.settings import check_listed, named_in
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.config.instance import InstanceSettings

WORKERS_MAX = 200
PORTS_MAX, PORT_MAX = 20, 65_535
NAMED_MAX = 20
"""Queues, or secrets: a role's policies have 10,240 characters in all."""

_ACCOUNT_ARN = r"arn:aws[a-z-]*:sqs:[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}:[0-9]{12}"
_QUEUE = rf"{_ACCOUNT_ARN}:[A-Za-z0-9_-]{{1,80}}(\.fifo)?"
_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,62}"
_PORTS = r"[0-9]{1,5}(-[0-9]{1,5})?"

FeedWorkersMax = Annotated[
    int,
    Meta(
        ge=0,
        le=WORKERS_MAX,
        description="Tasks that work on feeds, at one time; none while no feed is started. 0: the"
        " instance has neither these nor what starts them, and feeds are run by"
        " `lakebed feed run`. After 0 was deployed again, delete the stack"
        " `lakebed-INSTANCE-feeds`, unless `feed_take` keeps it.",
    ),
]
FeedTake = Annotated[
    bool,
    Meta(
        description="Whether a function takes, each minute, what there is for feeds with `run ="
        ' "function"`. It reads where `sources` and `feed_queues` say.'
    ),
]
FeedQueues = Annotated[
    str,
    Meta(
        pattern=rf"\A({_QUEUE}(,{_QUEUE})*)?\Z",
        description="Queues of SQS that feeds take messages from, by their ARNs, with commas"
        " between, of the instance's region. Tasks of feeds, and the function of `feed_take`, may"
        " receive from these, and delete there, and in no other queue.",
    ),
]
FeedSecrets = Annotated[
    str,
    Meta(
        pattern=rf"\A({_NAME}(,{_NAME})*)?\Z",
        description="Secrets that feeds name as `secret:NAME`: their NAMEs, with commas between."
        " They lie in Secrets Manager as lakebed/INSTANCE/NAME, encrypted with the key that it"
        " brings; tasks of feeds may read these, and no other secret.",
    ),
]
FeedSchemas = Annotated[
    bool,
    Meta(
        description="Whether tasks of feeds may read schemas in Glue's schema registry, for"
        ' decoders with `registry = "glue"`. Records name versions of schemas by ids that IAM knows'
        " no resource for, so it is all schemas of the account, in the instance's region."
    ),
]
FeedPorts = Annotated[
    str,
    Meta(
        pattern=rf"\A({_PORTS}(,{_PORTS})*)?\Z",
        description="Ports to which tasks of feeds may connect, beside 443: `9092` or `9092-9098`,"
        " with commas between. None: Kafka is out of reach.",
    ),
]
FeedPush = Annotated[
    bool,
    Meta(
        description="Whether senders may push records into feeds by the URL of a function, which"
        " takes requests that are signed by who may invoke it. `false`: there is none. After"
        " `false` was deployed again, delete the stack `lakebed-INSTANCE-feed-push`.",
    ),
]


def port_ranges(ports: str) -> list[tuple[int, int]]:
    """Return the first and last port of each range."""
    parts = (part.partition("-") for part in named_in(ports))
    return [(int(first), int(last or first)) for first, _, last in parts]


def check_feed_access(settings: InstanceSettings, *, has_own_way_out: bool) -> None:
    """Check that the settings fit together.

    has_own_way_out: tasks reach more than the services that the instance's own network has
        endpoints of.

    Raises:
        InvalidError: something is open to tasks that there are not, or cannot be reached; ports
            that are none; names twice, or too many.
    """
    listed = ("feed_ports", "feed_secrets", "feed_queues")
    named = [name for name in (*listed, "feed_schemas") if getattr(settings, name)]
    for_tasks = [name for name in named if not (settings.feed_take and name == "feed_queues")]
    if for_tasks and not settings.feed_workers_max:
        hint = "add `-c feed_workers_max=1`, or leave them out"
        raise InvalidError(
            "settings of tasks that there are not", settings=", ".join(for_tasks), hint=hint
        )
    for name in listed:
        check_listed(name, getattr(settings, name), items_max=NAMED_MAX)
    _check_ports(settings.feed_ports)
    out_of_reach = [name for name in named if name != "feed_queues"]
    if out_of_reach and not has_own_way_out:
        raise InvalidError(
            "a network without addresses reaches S3, DynamoDB and SQS, and nothing else",
            settings=", ".join(out_of_reach),
            task_addresses="private",
            hint="add vpc_id and subnet_ids of a network that leads to your brokers and has"
            " endpoints of Secrets Manager and Glue, as you need them",
        )


def _check_ports(ports: str) -> None:
    ranges = port_ranges(ports)
    fits = all(0 < first <= last <= PORT_MAX for first, last in ranges)
    if not fits or len(ranges) > PORTS_MAX:
        hint = f"name at most {PORTS_MAX}, from 1 to {PORT_MAX}, the lower one first: 9092-9098"
        raise InvalidError("not ports", feed_ports=ports[:200], hint=hint)


def secret_patterns(instance: str, name: str) -> list[str]:
    """Return the ends of the ARNs by which a secret is asked for: Secrets Manager adds six
    characters to the name; of a secret that is not there it knows the name alone."""
    whole = f"secret:lakebed/{instance}/{name}"
    return [whole, f"{whole}-??????"]
