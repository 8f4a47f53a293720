"""Settings of a source of Kafka: brokers, topics, where to begin, and how to prove who asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from lakebed.errors import InvalidError

EARLIEST = "earliest"
LATEST = "latest"
HIDDEN = "***"
SECRETS = ("password", "key_password")

Mechanism = Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class KafkaCredentials(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The credentials by which a Kafka broker and Lakebed know each other.

    mechanism: of SASL; "": none.
    tls: none: wherever a password, a certificate or an authority is given.
    ca_file: authorities, in PEM, beside or instead of the machine's.
    certificate_file, key_file: our own, in PEM, where the broker wants one.
    """

    mechanism: Mechanism = ""
    user: str = ""
    password: str = ""
    tls: bool | None = None
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = ""

    def __post_init__(self) -> None:
        if bool(self.mechanism) != bool(self.user and self.password):
            hint = "give `mechanism`, `user` and `password` together"
            raise InvalidError("half of a login at Kafka", user=self.user, hint=hint)

    def __repr__(self) -> str:
        fields = msgspec.structs.asdict(self)
        hidden = {name: HIDDEN for name in SECRETS if fields[name]}
        return f"KafkaCredentials({fields | hidden})"

    def secrets(self) -> tuple[str, ...]:
        """Return what no error and no log may show."""
        return tuple(value for name in SECRETS if (value := getattr(self, name)))

    def configuration(self) -> dict[str, Any]:
        """Return it as librdkafka names it."""
        wanted = bool(self.mechanism or self.ca_file or self.certificate_file)
        tls = wanted if self.tls is None else self.tls
        protocol = ("SASL_" if self.mechanism else "") + ("SSL" if tls else "PLAINTEXT")
        given = {
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
            "ssl.key.password": self.key_password,
        }
        return {"security.protocol": protocol} | {k: v for k, v in given.items() if v}


class KafkaSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source of Kafka.

    servers: some brokers, as `HOST:PORT,HOST:PORT`; they name the others.
    topics: a list of names, or a regular expression that a whole name matches.
    exclude: a regular expression; topics whose whole name matches it are left out. Topics of
        Kafka's own, which begin with two underscores, are found by a list only.
    start: where a topic partition begins that nothing was taken of: `earliest`, `latest` or a time
        as 2026-11-25T10:00:00Z. One that appears while this source is open begins at its first
        record. A new process cannot know which those are: give a time instead of `latest` to a feed
        that goes on for long.
    offsets: where a topic partition begins instead, as `TOPIC:PARTITION`.
    consumer_group: one of which offsets are set for people and their tools; they are never
        read. "": none.
    topic_ids: false: of brokers that give topics no ids (Kafka before 2.8): a topic that was made
        anew then passes for the old one.
    memory_bytes: of records that wait here, and at librdkafka. It may be passed by one fetch.
    answer_seconds: how long to wait for a broker before it counts as away.
    rack: ours, for brokers that let the nearest replica answer.
    """

    servers: Annotated[str, Meta(min_length=1, max_length=4_096)]
    topics: str | tuple[str, ...]
    exclude: str = ""
    start: str = EARLIEST
    offsets: Mapping[str, Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]] = {}
    consumer_group: str = ""
    security: KafkaCredentials = KafkaCredentials()
    topic_ids: bool = True
    memory_bytes: Annotated[int, Meta(ge=1 << 20, le=1 << 40)] = 64 << 20
    answer_seconds: Annotated[float, Meta(gt=0, le=600)] = 15.0
    rack: str = ""

    def __post_init__(self) -> None:
        pattern_of(self.topics if isinstance(self.topics, str) else "", "topics")
        pattern_of(self.exclude, "exclude")
        start_millis(self.start)
        if not self.topics:
            hint = 'give `topics = ["NAME"]`, or a regular expression'
            raise InvalidError("a source of Kafka without topics", hint=hint)


def pattern_of(text: str, field: str) -> re.Pattern[str]:
    """Return a regular expression. Raises: InvalidError: the text is none."""
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidError(
            "a pattern is not a regular expression",
            field=field,
            given=text[:200],
            problem=error,
            hint="write it in the syntax of Python's `re`, and escape `*` and `.` of names",
        ) from None


def start_millis(start: str) -> int | None:
    """Return a start that is a time, in milliseconds of the epoch. None: it is `earliest` or
    `latest`. Raises: InvalidError: it is neither."""
    if start in (EARLIEST, LATEST):
        return None
    try:
        time = datetime.fromisoformat(start)
    except ValueError:
        hint = "use earliest, latest, or a time as 2026-11-25T10:00:00Z"
        raise InvalidError("not a start", start=start[:80], hint=hint) from None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000)
