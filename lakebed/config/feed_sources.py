"""Sources of feeds, as `source = { KIND = ..., ... }` says them. From these and the other settings
of feeds the page `docs/reference/feed-settings.md` is made."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from lakebed.config.definitions.custom_sources import CustomFeed, custom_source_of
from lakebed.config.definitions.toml_fields import check_names, checked, section
from lakebed.errors import InvalidError, did_you_mean

DAY_SECONDS = 86_400
_BUCKET = r"\As3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\x00-\x1f]*)?\Z"
_ADDRESS = r"\A[A-Za-z0-9.:\[\]_-]*:[0-9]{1,5}\Z"
SECRET = r"\A(secret:[A-Za-z][A-Za-z0-9_-]{0,62})?\Z"  # noqa: S105 - what names one

SourceKind = Literal["kafka", "files", "s3", "sqs", "push", "socket"]


class KafkaLogin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The credentials by which a broker and Lakebed know each other. Secrets are named:
    `secret:NAME`."""

    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = ""
    user: Annotated[str, Meta(max_length=1_000)] = ""
    password: Annotated[str, Meta(pattern=SECRET)] = ""
    tls: bool | None = None
    ca_file: Annotated[str, Meta(max_length=4_096)] = ""
    certificate_file: Annotated[str, Meta(max_length=4_096)] = ""
    key_file: Annotated[str, Meta(max_length=4_096)] = ""
    key_password: Annotated[str, Meta(pattern=SECRET)] = ""


class KafkaFeed(msgspec.Struct, frozen=True, kw_only=True):
    """Topics of Kafka."""

    kind: ClassVar[SourceKind] = "kafka"
    is_ordered: ClassVar[bool] = True

    kafka: Annotated[
        str, Meta(min_length=1, max_length=4_096, description="Some brokers: HOST:PORT,HOST:PORT.")
    ]
    topics: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4_096)] | tuple[str, ...],
        Meta(description="A list of names, or one regular expression of whole names."),
    ]
    exclude: Annotated[
        str, Meta(max_length=4_096, description="A regular expression of names to leave out.")
    ] = ""
    start: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=80,
            description="Where a topic partition begins that nothing was taken of: `earliest`,"
            " `latest`, or a time.",
        ),
    ] = "earliest"
    offsets: Annotated[
        dict[str, Annotated[int, Meta(ge=0)]],
        Meta(
            max_length=10_000,
            description="Where a topic partition begins instead, by TOPIC:PARTITION.",
        ),
    ] = {}
    group: Annotated[
        str,
        Meta(
            max_length=1_000,
            description="A consumer group whose offsets are set for people and their tools.",
        ),
    ] = ""
    security: Annotated[
        KafkaLogin, Meta(description="`mechanism`, `user`, `password`, `tls`, `ca_file`, ...")
    ] = KafkaLogin()
    topic_ids: Annotated[
        bool, Meta(description="`false`: of brokers before 2.8, which give topics no ids.")
    ] = True
    rack: Annotated[
        str, Meta(max_length=1_000, description="Ours, so that the nearest replica answers.")
    ] = ""


class FilesFeed(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of files that grow."""

    kind: ClassVar[SourceKind] = "files"
    is_ordered: ClassVar[bool] = True

    files: Annotated[
        str, Meta(min_length=1, max_length=4_096, description="A pattern of their paths.")
    ]


class S3Feed(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of S3."""

    kind: ClassVar[SourceKind] = "s3"
    is_ordered: ClassVar[bool] = False

    s3: Annotated[str, Meta(pattern=_BUCKET, description="s3://BUCKET/PREFIX.")]
    pattern: Annotated[
        str, Meta(max_length=4_096, description="A pattern of keys behind the prefix.")
    ] = ""
    notifications: Annotated[
        str,
        Meta(
            max_length=1_000,
            description="A queue of S3's notifications, by its URL: hints that bring objects sooner"
            " than the next listing. Its messages are deleted, so it has no other reader.",
        ),
    ] = ""
    list_seconds: Annotated[
        int,
        Meta(ge=1, le=DAY_SECONDS, description="Time between two listings, which are the truth."),
    ] = 60
    order: Annotated[
        Literal["any", "name"],
        Meta(
            description="`name`: keys are put in ascending order, so the last one is remembered in"
            " place of each."
        ),
    ] = "any"
    parts: Annotated[
        int, Meta(ge=1, le=1_000, description="Source splits, by hash of the key.")
    ] = 1
    once_seconds: Annotated[
        int,
        Meta(
            ge=3_600,
            le=366 * DAY_SECONDS,
            description="An object that was modified so long before the newest that was taken is"
            " not looked at again. Two days less than `job_id_seconds_min` of the landing table, or"
            " shorter.",
        ),
    ] = 14 * DAY_SECONDS


class SqsFeed(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a queue of SQS."""

    kind: ClassVar[SourceKind] = "sqs"
    is_ordered: ClassVar[bool] = False

    sqs: Annotated[str, Meta(min_length=1, max_length=1_000, description="The queue, by its URL.")]
    receivers: Annotated[
        int, Meta(ge=1, le=100, description="Source splits of the queue, each with a reader.")
    ] = 1
    hidden_seconds: Annotated[
        int,
        Meta(
            ge=2,
            le=43_200,
            description="How long messages of a worker that was killed stay out of sight. Readers"
            " that live renew it.",
        ),
    ] = 300
    once_seconds: Annotated[
        int,
        Meta(
            ge=60,
            le=366 * DAY_SECONDS,
            description="How long a message that was taken is remembered, at the least. The"
            " newest million are, whatever their age.",
        ),
    ] = 4 * 3_600


class PushFeed(msgspec.Struct, frozen=True, kw_only=True):
    """Records that senders push by HTTP."""

    kind: ClassVar[SourceKind] = "push"
    is_ordered: ClassVar[bool] = False

    push: Annotated[
        bool | Annotated[str, Meta(pattern=_ADDRESS)],
        Meta(
            description="Where its receiver listens: `HOST:PORT`, or `:PORT` of this machine."
            " `true`: where its command says."
        ),
    ]
    answer: Annotated[
        Literal["landed", "committed"],
        Meta(description="When a sender hears success: its records are landed, or in the table."),
    ] = "landed"
    token: Annotated[
        str,
        Meta(
            pattern=SECRET, description="What senders show, as `secret:NAME`. None: no matter who."
        ),
    ] = ""
    body_bytes_max: Annotated[
        int, Meta(ge=1, le=1 << 30, description="A larger request is refused.")
    ] = 16 << 20
    buffer_bytes: Annotated[
        int,
        Meta(
            ge=1 << 10,
            le=16 << 30,
            description="Of all requests that a receiver has in hand; beyond it senders wait.",
        ),
    ] = 64 << 20
    once_seconds: Annotated[
        int,
        Meta(
            ge=60,
            le=366 * DAY_SECONDS,
            description="How long a request that was landed is remembered, at the least. The"
            " newest million are, whatever their age.",
        ),
    ] = DAY_SECONDS


class SocketFeed(msgspec.Struct, frozen=True, kw_only=True):
    """Records that senders write into a socket."""

    kind: ClassVar[SourceKind] = "socket"
    is_ordered: ClassVar[bool] = False

    socket: Annotated[
        str, Meta(pattern=_ADDRESS, description="Where to listen: HOST:PORT, or :PORT.")
    ]
    framing: Annotated[
        Literal["lines", "lengths"],
        Meta(description="A record ends with its line, or begins with its length (4 bytes)."),
    ] = "lines"
    record_bytes_max: Annotated[
        int, Meta(ge=1, le=1 << 30, description="A larger record closes its socket.")
    ] = 16 << 20
    once_seconds: Annotated[
        int,
        Meta(
            ge=60,
            le=366 * DAY_SECONDS,
            description="How long what was landed at once is remembered, at the least. The"
            " newest million are, whatever their age.",
        ),
    ] = DAY_SECONDS


Source = KafkaFeed | FilesFeed | S3Feed | SqsFeed | PushFeed | SocketFeed | CustomFeed
SOURCES: tuple[type[Any], ...] = (
    KafkaFeed,
    FilesFeed,
    S3Feed,
    SqsFeed,
    PushFeed,
    SocketFeed,
)


def source_of(said: object, at: str) -> Source:
    """Return the source that is said.

    Raises:
        InvalidError: it names none or two, or a setting that its kind does not have.
    """
    fields = section(said, at)
    forms = {form.kind: form for form in SOURCES}
    where = at if at.endswith("source") else at.rpartition(".source")[0] or at
    if "kind" in fields:
        return custom_source_of(fields, forms, where)
    kinds = [kind for kind in forms if kind in fields]
    if len(kinds) > 1:
        hint = f"give one of {', '.join(kinds)}"
        raise InvalidError("a feed has one source", at=at, hint=hint)
    if not kinds:
        near = did_you_mean(next(iter(fields), ""), list(forms), what="source")
        hint = f'{near}; or name an adaptor: `kind = "NAME"`'
        raise InvalidError("an unknown source", at=at, hint=hint)
    form = forms[kinds[0]]
    check_names(fields, form.__struct_fields__, where)
    if form is KafkaFeed:
        if "topics" not in fields:
            hint = 'give `topics = ["NAME"]`, or a regular expression'
            raise InvalidError("a source of Kafka without topics", at=at, hint=hint)
        if "security" in fields:
            checked(section(fields["security"], f"{at}.security"), KafkaLogin, f"{at}.security")
    found: Source = checked(fields, form, where)
    if isinstance(found, KafkaFeed):
        _check_kafka(found, at)
    if isinstance(found, PushFeed) and found.push is False:
        hint = "give `push = true`, or where to listen"
        raise InvalidError("not a source", at=f"{at}.push", hint=hint)
    return found


def _check_kafka(source: KafkaFeed, at: str) -> None:
    security = source.security
    login = (security.mechanism, security.user, security.password)
    if any(login) and not all(login):
        hint = "give `mechanism`, `user` and `password` together"
        raise InvalidError("half of a login at Kafka", at=f"{at}.security", hint=hint)
    patterns = {"topics": source.topics, "exclude": source.exclude}
    for name, pattern in patterns.items():
        if isinstance(pattern, str):
            _check_pattern(pattern, f"{at}.{name}")
    if not source.topics:
        hint = 'give `topics = ["NAME"]`, or a regular expression'
        raise InvalidError("a source of Kafka without topics", at=f"{at}.topics", hint=hint)
    if source.start not in {"earliest", "latest"}:
        try:
            datetime.fromisoformat(source.start)
        except ValueError:
            hint = "use earliest, latest, or a time as 2026-11-25T10:00:00Z"
            raise InvalidError("not a start", at=f"{at}.start", hint=hint) from None


def _check_pattern(pattern: str, at: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        hint = "write a regular expression, as in `orders-.*`"
        raise InvalidError("not a pattern", at=at, problem=error, hint=hint) from None
