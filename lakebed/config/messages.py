"""Messages of users: what may stand in one, how much of it, and what is said of one that is wrong.

The pages `docs/reference/message-*.md` are made from these models, and their examples are sent by
tests. Nothing in a message is ever evaluated. The library does without this module and pydantic:
who takes messages from outside loads it (docs/decisions/0001).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

import msgspec
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from lakebed.config.sent.message_parts import (
    VALUE_CHARACTERS_SHOWN,
    Files,
    JobMessage,
    UserMessage,
    validated_by,
)
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.json_fields import check_fields_once
from lakebed.model.names import JobId, job_id, table_name
from lakebed.model.predicates.language import Predicate, predicate_from_json
from lakebed.model.predicates.text import predicate_from_text
from lakebed.model.versions import version_of

MESSAGE_BYTES_MAX = 256 * 1024
"""Most bytes of a message that SQS takes; the same for a lambda that is invoked."""
KEYS_MAX = 10_000
COLUMNS_MAX = 2_000
INSTANCE_TYPES_MAX = 5
CONF_MAX = 50
PROBLEMS_LISTED = 5
"""Problems of one message that its error names. A message that is mended is checked again."""

SPARK_CONF = (
    r"spark\.((driver|executor)\.(cores|memory|memoryOverhead)"
    r"|executor\.(instances|memoryOverheadFactor)"
    r"|dynamicAllocation\.(enabled|initialExecutors|minExecutors|maxExecutors|executorIdleTimeout)"
    r"|emr-serverless\.(driver|executor)\.disk"
    r"|task\.(cpus|maxFailures)|stage\.maxConsecutiveAttempts|speculation(\.\w+)?"
    r"|network\.timeout)"
)
"""Pattern of Spark's options that set resources and patience. Classes, files, addresses and options
of Java stay ours."""

MessageT = TypeVar("MessageT", bound="UserMessage")


def _check_key_value(value: object) -> None:
    if type(value) not in (int, str):
        hint = "give a text or an integer; null is never a key"
        raise InvalidError(
            "not a value of a key", got=ascii(value)[:VALUE_CHARACTERS_SHOWN], hint=hint
        )


def _check_key(key: object) -> None:
    """Hold a key against its three forms."""
    values = key.values() if isinstance(key, dict) else key if isinstance(key, list) else [key]
    for value in values:
        _check_key_value(value)


def predicate_in(where: object) -> Predicate:
    """Return the predicate that a message has as text or as JSON. Raises: InvalidError."""
    return predicate_from_text(where) if isinstance(where, str) else predicate_from_json(where)


Column = Annotated[str, StringConstraints(min_length=1, max_length=255)]
KeyValue = Annotated[JsonValue, validated_by(_check_key_value)]
Key = Annotated[JsonValue, validated_by(_check_key)]


class SubmissionMessage(UserMessage):
    """Let files wait until there are enough for a job, each of which stands for itself."""

    files: Files


class IngestMessage(JobMessage):
    """Take the rows of files into a table, all or none."""

    files: Files


class BulkImportMessage(JobMessage):
    """Take the rows of very many files into a table by Spark, all or none."""

    files: Files
    spark_conf: Annotated[
        dict[
            Annotated[str, StringConstraints(pattern=rf"^{SPARK_CONF}$")],
            Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.,_-]{1,100}$")],
        ],
        Field(
            max_length=CONF_MAX,
            description="Settings of Spark for this job, as texts: cores, memory, disks, numbers"
            " of executors, patience. Settings that name code, files or addresses are refused.",
        ),
    ] = {}  # noqa: RUF012 - pydantic copies it
    platform: Annotated[
        Literal["serverless", "cluster", "shared"],
        Field(
            description="Where Spark runs: on EMR Serverless; on a cluster of EMR that is made for"
            " this job and ends with it; on the instance's shared cluster."
        ),
    ] = "serverless"
    instance_types: Annotated[
        list[Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{2,30}\.[a-z0-9-]{2,30}$")]],
        Field(
            min_length=1,
            max_length=INSTANCE_TYPES_MAX,
            description="Of `cluster`: kinds of machines, tried in this order until there is"
            " capacity, such as `m7g.2xlarge`. Left out: the instance's.",
        ),
    ] = []  # noqa: RUF012 - pydantic copies it
    units_max: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000,
            description="Of `cluster`: machines beside its first, at most. Left out: the"
            " instance's.",
        ),
    ] = None
    spot: Annotated[
        bool,
        Field(
            description="Of `cluster`: on spare machines, which cost less and may be taken back;"
            " where there are none within ten minutes, on such as cost the full price."
        ),
    ] = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        of_clusters = {"instance_types", "units_max", "spot"} & self.model_fields_set
        if of_clusters and self.platform != "cluster":
            names = ", ".join(f"`{name}`" for name in sorted(of_clusters))
            raise ValueError(f'{names}: for `"platform": "cluster"` only')
        if len(set(self.instance_types)) < len(self.instance_types):
            raise ValueError("`instance_types`: name each once")
        return self


class RangeOfMessage(BaseModel):
    """Values of one key field between two ends. An end that is left out is open."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    min: KeyValue | None = None
    max: KeyValue | None = None
    min_inclusive: bool = True
    max_inclusive: bool = False


class QueryMessage(JobMessage):
    """Give the rows of keys or ranges of a table, in key order."""

    keys: Annotated[
        list[Key] | None,
        Field(
            min_length=1,
            max_length=KEYS_MAX,
            description="Exact row keys: a value, a list of the values of the first key fields, or"
            " values by name. Dates and times are ISO 8601 texts, binary is hex digits.",
        ),
    ] = None
    ranges: Annotated[
        list[dict[Column, RangeOfMessage]] | None,
        Field(
            min_length=1,
            max_length=KEYS_MAX,
            description="In place of `keys`: ranges of key fields by name; of one entry all must"
            " hold, several entries are a union. `[{}]` means every row.",
        ),
    ] = None
    columns: Annotated[
        list[Column] | None,
        Field(
            min_length=1,
            max_length=COLUMNS_MAX,
            description="Fields to return. Left out: all.",
        ),
    ] = None
    where: Annotated[
        str | dict[str, JsonValue] | None,
        Field(
            description="Only rows that this keeps: text like `fare >= 4 and note is not null`,"
            " or the same as JSON. It is read as tests on fields, never evaluated."
        ),
    ] = None
    limit: Annotated[
        int | None, Field(ge=1, le=1 << 53, description="At most so many rows. Left out: all.")
    ] = None
    scan_bytes_max: Annotated[
        int | None,
        Field(ge=0, le=1 << 53, description="Bytes it may read. Left out: by the table's setting."),
    ] = None
    as_of: Annotated[
        int | str | None,
        Field(description="Version: a log number, a time like `2026-11-25T10:00Z`, or a tag."),
    ] = None
    format: Annotated[
        Literal["json", "arrow"],
        Field(
            description="Form of a small result: rows as JSON, or an Arrow stream as base64. A"
            " large one is Parquet files."
        ),
    ] = "json"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.keys is None) == (self.ranges is None):
            raise ValueError('give either `keys` or `ranges`; `"ranges": [{}]` means every row')
        for name, check in (("where", predicate_in), ("as_of", version_of)):
            try:
                if getattr(self, name) is not None:
                    check(getattr(self, name))
            except InvalidError as error:
                raise ValueError(f"{name}: {error}") from None
        return self


class MessageKind(msgspec.Struct, frozen=True):
    """A kind of message.

    page: where it is described.
    example: one that is allowed.
    """

    name: str
    model: type[UserMessage]
    page: str
    example: str


INGEST = MessageKind(
    "ingest",
    IngestMessage,
    "message-ingest.md",
    '{"id": "2013-01-01", "table": "trips",'
    ' "files": ["s3://landing/trips/2013-01-01/", "s3://landing/late.parquet"]}',
)
BULK_IMPORT = MessageKind(
    "bulk import",
    BulkImportMessage,
    "message-bulk-import.md",
    '{"id": "2013", "table": "trips", "files": ["s3://landing/trips/2013/"],'
    ' "spark_conf": {"spark.executor.cores": "4", "spark.dynamicAllocation.maxExecutors": "20"}}',
)
QUERY = MessageKind(
    "query",
    QueryMessage,
    "message-query.md",
    '{"id": "report-7", "table": "trips", "ranges": [{"id": {"min": "a", "max": "c"}}],'
    ' "columns": ["id", "fare"], "where": "fare >= 4", "limit": 1000}',
)
SUBMISSION = MessageKind(
    "submission",
    SubmissionMessage,
    "message-submission.md",
    '{"table": "trips", "files": ["s3://landing/trips/2013-01-01/", "s3://landing/late.parquet"]}',
)
KINDS = (INGEST, SUBMISSION, BULK_IMPORT, QUERY)


def ingest_message(body: bytes) -> IngestMessage:
    """Return an ingest message. Raises: InvalidError, which says all that is wrong."""
    return _decoded(INGEST, IngestMessage, body)


def submission_message(body: bytes) -> SubmissionMessage:
    """Return a submission message. Raises: InvalidError, which says all that is wrong."""
    return _decoded(SUBMISSION, SubmissionMessage, body)


def bulk_import_message(body: bytes) -> BulkImportMessage:
    """Return a bulk import message. Raises: InvalidError, which says all that is wrong."""
    return _decoded(BULK_IMPORT, BulkImportMessage, body)


def query_message(body: bytes) -> QueryMessage:
    """Return a query message. Raises: InvalidError, which says all that is wrong."""
    return _decoded(QUERY, QueryMessage, body)


class Named(msgspec.Struct, frozen=True):
    """The job and the table that an invalid message names all the same. None: it names none."""

    job: JobId | None = None
    table: str | None = None


def named_in(body: bytes) -> Named:
    """Return to whom to report a message, whatever else is wrong with it."""
    if len(body) > MESSAGE_BYTES_MAX:
        return Named()
    try:
        check_fields_once(body)  # of two names, which one is meant?
        decoded = msgspec.json.decode(body)
    except (InvalidError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Named()
    if not isinstance(decoded, dict):
        return Named()
    return Named(_allowed(job_id, decoded.get("id")), _allowed(table_name, decoded.get("table")))


def _allowed(check: Any, value: object) -> Any:  # noqa: ANN401 - a name of some kind
    try:
        return check(value)
    except InvalidError:
        return None


def _decoded(kind: MessageKind, model: type[MessageT], body: bytes) -> MessageT:
    hint = f"for instance {kind.example}; see `lakebed explain {kind.page.removesuffix('.md')}`"
    if len(body) > MESSAGE_BYTES_MAX:
        raise InvalidError(
            "a message is too large",
            bytes=len(body),
            bytes_max=MESSAGE_BYTES_MAX,
            hint="name a folder in place of its files, or send several messages",
        )
    check_fields_once(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=True)
        problems = [_problem(model, one) for one in found[:PROBLEMS_LISTED]]
        if len(found) > PROBLEMS_LISTED:
            problems.append(f"and {len(found) - PROBLEMS_LISTED} more")
        what = f"not {'an' if kind.name[0] in 'aeiou' else 'a'} {kind.name} message"
        raise InvalidError(what, problems="; ".join(problems), hint=hint) from None


def _problem(model: type[BaseModel], found: ErrorDetails) -> str:
    """Return one thing that is wrong, with where it stands."""
    path = ".".join(str(part)[:VALUE_CHARACTERS_SHOWN] for part in found["loc"])
    if found["type"] == "extra_forbidden" and len(found["loc"]) == 1:
        near = did_you_mean(path, model.model_fields, what="field")
        return f"{ascii(path)[1:-1]}: there is no such field, {near}"
    text = found["msg"].removeprefix("Value error, ")
    if found["type"] == "string_pattern_mismatch":
        text = "is not among what is allowed"
    return f"{ascii(path)[1:-1]}: {text}" if path else text
