"""Schema registries that speak Confluent's HTTP API: Confluent's own, Karapace, Apicurio, Redpanda.

A schema that refers to others is asked for with all of them. What is no clear answer of a registry
is no answer: only the registry itself can say that it does not know an id.
"""

from __future__ import annotations

import re
from typing import Annotated, Final
from urllib.parse import quote

import msgspec
from msgspec import Meta

from lakebed.backends.web.asking import WebAnswer, WebServer
from lakebed.errors import DeniedError, InvalidError, UnavailableError
from lakebed.ports.clock import Clock
from lakebed.ports.schema_registry import (
    REFERENCES_MAX,
    SCHEMA_BYTES_MAX,
    RegisteredSchema,
    SchemaId,
)

ANSWER_SECONDS: Final = 5.0
"""Most seconds until an answer is complete."""
QUESTION_SECONDS: Final = 20.0
"""Most seconds for a schema with all that it refers to, tries and waits included."""
TRIES_MAX: Final = 3
FIRST_WAIT_SECONDS: Final = 0.2
"""Seconds to wait before the second try; before the third it is twice that."""
_OK, _MISSING, _BUSY, _SLOW, _REDIRECTS, _SERVER = 200, 404, 429, 408, range(300, 400), 500
_REFUSED: Final = (401, 403)
_UNKNOWN_CODES: Final = range(40401, 40404)
"""The registry's own error codes for no such subject, version or schema."""
_ID_MAX: Final = (1 << 31) - 1
_PROTOBUF: Final = "protobuf"
_SERIALIZED: Final = "?format=serialized"
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")


class _Reference(msgspec.Struct, frozen=True):
    subject: Annotated[str, Meta(min_length=1, max_length=1_000)]
    version: Annotated[int, Meta(ge=1, le=_ID_MAX)]
    name: Annotated[str, Meta(max_length=1_000)] = ""


class _Schema(msgspec.Struct, frozen=True, rename="camel"):
    schema: str
    schema_type: Annotated[str, Meta(max_length=100)] | None = None
    references: Annotated[tuple[_Reference, ...], Meta(max_length=REFERENCES_MAX)] | None = None

    @property
    def kind(self) -> str:
        return (self.schema_type or "AVRO").lower()

    def registered(self, references: dict[_Reference, str]) -> RegisteredSchema:
        return RegisteredSchema(
            kind=self.kind,
            text=self.schema,
            references=tuple(references.values()),
            names=tuple(reference.name for reference in references),
        )


class _Refusal(msgspec.Struct, frozen=True):
    error_code: int


class ConfluentSchemaRegistry:
    """Schemas by the ids that one registry gave them.

    is_serialized: whether those of Protobuf are asked for as descriptors.
    """

    def __init__(self, server: WebServer, clock: Clock, *, is_serialized: bool = False) -> None:
        self._server = server
        self._clock = clock
        self._is_serialized = is_serialized

    def schema(self, id_: SchemaId) -> RegisteredSchema | None:
        """Return a schema."""
        if not isinstance(id_, int) or not 0 < id_ <= _ID_MAX:
            return None
        return self._with_references(f"/schemas/ids/{id_}")

    def newest(self, subject: str) -> RegisteredSchema | None:
        """Return the newest schema of a subject."""
        return self._with_references(f"/subjects/{quote(subject, safe='')}/versions/latest")

    def _with_references(self, path: str) -> RegisteredSchema | None:
        until = self._clock.monotonic() + QUESTION_SECONDS
        found = self._asked(path, until)
        if found is None:
            return None
        texts: dict[_Reference, str] = {}
        has_all = self._collect(found, texts, set(), until)
        return found.registered(texts) if has_all else None

    def _collect(
        self,
        schema: _Schema,
        texts: dict[_Reference, str],
        asked: set[_Reference],
        until: float,
    ) -> bool:
        """Put what a schema refers to into `texts`, each behind what it needs itself. Returns
        whether the registry has all of it, and it is not too much."""
        for reference in schema.references or ():
            if reference in asked:
                continue
            asked.add(reference)
            if len(asked) > REFERENCES_MAX:
                return False
            subject = quote(reference.subject, safe="")
            found = self._asked(f"/subjects/{subject}/versions/{reference.version}", until)
            if found is None or not self._collect(found, texts, asked, until):
                return False
            texts[reference] = found.schema
            if sum(map(len, texts.values())) > SCHEMA_BYTES_MAX:
                return False
        return True

    def _asked(self, path: str, until: float) -> _Schema | None:
        """Return what the registry says. None: it says that there is no such thing."""
        found = self._asked_for(path, until)
        if found is None or not self._is_serialized or found.kind != _PROTOBUF:
            return found
        found = self._asked_for(path + _SERIALIZED, until)
        if found is not None and not _BASE64.fullmatch(found.schema):
            raise InvalidError(
                "the schema registry gives schemas of Protobuf as text alone",
                registry=self._server.url,
                hint="name a descriptor set: `descriptors` and `message`, without `registry`",
            )
        return found

    def _asked_for(self, path: str, until: float) -> _Schema | None:
        wait = FIRST_WAIT_SECONDS
        for _ in range(TRIES_MAX - 1):
            try:
                return self._said(self._answer(path, until))
            except UnavailableError:
                if self._clock.monotonic() + wait >= until:
                    raise
                self._clock.sleep(wait)
                wait *= 2
        return self._said(self._answer(path, until))

    def _answer(self, path: str, until: float) -> WebAnswer:
        left = until - self._clock.monotonic()
        if left <= 0:
            raise self._unclear(f"it takes more than {QUESTION_SECONDS:g} s")
        seconds = min(ANSWER_SECONDS, left)
        return self._server.get(path, seconds=seconds, bytes_max=SCHEMA_BYTES_MAX)

    def _said(self, answer: WebAnswer) -> _Schema | None:
        match answer.status:
            case status if status == _OK:
                return self._parsed(answer.body)
            case status if status in _REFUSED:
                raise DeniedError(
                    "the schema registry refuses our credentials",
                    registry=self._server.url,
                    status=status,
                    hint="look at `user` and `password` of the decoder's registry",
                )
            case status if status == _MISSING and _code_of(answer.body) in _UNKNOWN_CODES:
                return None
            case status if status in _REDIRECTS:
                raise InvalidError(
                    "a schema registry sends us to another address, where we do not go",
                    registry=self._server.url,
                    status=status,
                    location=answer.location,
                    hint="write the address of the registry itself",
                )
            case status if status >= _SERVER or status in {_MISSING, _BUSY, _SLOW, *range(200)}:
                raise self._unclear(f"status {status}")
            case status:
                raise InvalidError(
                    "the schema registry refuses the question",
                    registry=self._server.url,
                    status=status,
                    hint="write the address below which it has /schemas/ids",
                )

    def _parsed(self, body: bytes) -> _Schema:
        try:
            return msgspec.json.decode(body, type=_Schema)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._unclear("it is no answer of a schema registry") from None

    def _unclear(self, why: str) -> UnavailableError:
        return UnavailableError(
            "the schema registry gives no clear answer",
            registry=self._server.url,
            why=why,
            hint="look whether a registry answers below this address",
        )


def _code_of(body: bytes) -> int | None:
    try:
        return msgspec.json.decode(body, type=_Refusal).error_code
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
