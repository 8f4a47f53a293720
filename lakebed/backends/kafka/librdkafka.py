"""librdkafka's clients: imported late, configured, and with a log that shows no secret."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lakebed.backends.kafka.kafka_errors import DENIED, translated
from lakebed.backends.kafka.settings import HIDDEN, KafkaSettings
from lakebed.errors import InvalidError, LakebedError, UnavailableError

if TYPE_CHECKING:
    from types import ModuleType

    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import AdminClient

LOGGER = "lakebed.kafka"
LINE_CHARACTERS_MAX = 300
LINES_MAX = 5
"""Most log lines of one kind in a row: a missing broker would be logged twenty times a second."""
NO_GROUP = "lakebed"
"""librdkafka wants a consumer group, also from who never joins one."""


class Scrub:
    """Makes what librdkafka says fit to be read: one short line, without secrets."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets

    def __call__(self, text: str) -> str:
        """Return a text as it may be shown."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        shown = "".join(letter if letter.isprintable() else " " for letter in text)
        return shown[:LINE_CHARACTERS_MAX]


class ScrubbedLines(logging.Filter):
    """Lets a log line through when it is fit to be read, and of many alike the first ones."""

    def __init__(self, scrub: Scrub) -> None:
        super().__init__()
        self._scrub = scrub
        self._last = ""
        self._alike = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is shown. It is changed."""
        line = self._scrub(record.getMessage())
        record.msg, record.args = line, ()
        kind = line.split(" ", 1)[0]
        self._alike = self._alike + 1 if kind == self._last else 1
        self._last = kind
        return self._alike <= LINES_MAX


class Client:
    """A source's connections to Kafka: a consumer and an administrator's client, made when they
    are needed. on_error: called with what no request answers for, such as brokers that are away."""

    def __init__(self, settings: KafkaSettings, *, on_error: Callable[[KafkaError], None]) -> None:
        self.scrub = Scrub(settings.security.secrets())
        self.module = _confluent_kafka()
        self._settings = settings
        self._on_error = on_error
        self._logger = logging.Logger(LOGGER)  # noqa: LOG001 - one a source: it knows the secrets
        self._logger.parent = logging.getLogger("lakebed")
        self._logger.addFilter(ScrubbedLines(self.scrub))
        self._consumer: Consumer | None = None
        self.is_closed = False
        self._admin: AdminClient | None = None
        self._refusal: KafkaError | None = None

    @property
    def consumer(self) -> Consumer:
        """Return the consumer. Raises: InvalidError: librdkafka refuses the settings."""
        if self._consumer is None:
            more = _consumer_configuration(self._settings)
            made = self._made(self.module.Consumer, more | {"on_commit": _ignore_commit})
            self._consumer = made
        return self._consumer

    @property
    def admin(self) -> AdminClient:
        """Return the administrator's client. Raises: InvalidError: librdkafka refuses the
        settings."""
        if self._admin is None:
            from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - an extra

            self._admin = self._made(AdminClient, {})
        return self._admin

    def error(self, error: KafkaError, **facts: object) -> LakebedError:
        """Return what an error of librdkafka means here. A request of one that may not log in just
        gets no answer, and the reason is heard beside it."""
        if self._admin is not None:
            self._admin.poll(0)  # hears what there is
        meaning = translated(error, self.scrub(error.str()), **facts)
        refusal, self._refusal = self._refusal, None
        if refusal is None or not isinstance(meaning, UnavailableError):
            return meaning
        return translated(refusal, self.scrub(refusal.str()), **facts)

    def close(self) -> None:
        """Close connections. Closing twice does no harm."""
        self.is_closed = True
        consumer, self._consumer, self._admin = self._consumer, None, None
        if consumer is not None:
            consumer.close()

    def _hear(self, error: KafkaError) -> None:
        if error.name() in DENIED:
            self._refusal = error
        self._on_error(error)

    def _made(self, make: Callable[..., Any], more: dict[str, Any]) -> Any:  # noqa: ANN401 - of it
        shared = {
            "bootstrap.servers": self._settings.servers,
            "client.id": "lakebed",
            "client.rack": self._settings.rack,
            "error_cb": self._hear,
            "log_level": 5,
            "reconnect.backoff.ms": 200,
            "reconnect.backoff.max.ms": 2_000,
            "socket.keepalive.enable": True,
            **self._settings.security.configuration(),
        }
        try:
            return make(shared | more, logger=self._logger)
        except self.module.KafkaException as error:
            problem = self.scrub(error.args[0].str())
            hint = "mend the settings of this source"
            raise InvalidError("Kafka's client refuses", problem=problem, hint=hint) from None


def _consumer_configuration(settings: KafkaSettings) -> dict[str, Any]:
    half = settings.memory_bytes // 2
    return {
        "group.id": settings.consumer_group or NO_GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "allow.auto.create.topics": False,
        "check.crcs": True,
        "queued.max.messages.kbytes": max(half >> 10, 1),
        "fetch.message.max.bytes": min(1 << 20, half),
        "fetch.queue.backoff.ms": 20,
        "fetch.wait.max.ms": 200,
    }


def _ignore_commit(*_: object) -> None:
    """Offsets of a group are for people: one that was not set is set with the next commit."""


def _confluent_kafka() -> ModuleType:
    try:
        import confluent_kafka  # noqa: PLC0415 - not installed everywhere
    except ImportError:
        hint = "pip install lakebed[feeds]"
        raise InvalidError("confluent-kafka is not installed", hint=hint) from None
    return confluent_kafka
