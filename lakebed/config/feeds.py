"""Feeds as a file says them, in TOML: `[feed.NAME]`, `[connection.NAME]`, `[policy.NAME]`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from lakebed.config.decoders import DecoderSettings, decoder_settings_of
from lakebed.config.definitions.connections import DefinedConnection, connection_of
from lakebed.config.definitions.toml_fields import at_of, check_names, checked, section
from lakebed.config.feed_fields import plain
from lakebed.config.feed_sources import FilesFeed, S3Feed, Source, SqsFeed, source_of
from lakebed.config.policies import DEFAULT_POLICY
from lakebed.config.policy_definitions import PolicyDefinition, policy_definition
from lakebed.errors import InvalidError
from lakebed.model.feeds.definitions import KINDS, NUMBER_MAX, DefinitionKind
from lakebed.model.names import TableName, table_name

IN_FUNCTIONS = (S3Feed, SqsFeed)
"""Sources that a function, which runs for moments, can take: the store keeps for it what it does
not take now. Files lie on a machine, brokers lie in a network that functions are not in, and who
pushes waits for a receiver."""
QUARANTINE_SUFFIX = "_quarantine"
FILE_VERSION_MAX = NUMBER_MAX >> 1
"""Greatest version in a file. Versions of the registry rise above it when the file is applied: as
many are left, before the one that ends connections."""


class FeedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a feed beside those of its source."""

    decoder: Annotated[
        dict[str, Any],
        Meta(
            description="How a record is read: `format` and what belongs to it. Left out: records"
            " are landed, and no table is made of them."
        ),
    ] = {}
    landing: Annotated[
        bool | None,
        Meta(
            description="Whether records are kept as they come, in the table NAME_landing. What"
            " cannot be read twice in the same order always is. Left out: where no connection takes"
            " them."
        ),
    ] = None
    run: Annotated[
        Literal["workers", "function"],
        Meta(
            description="Who takes its records. `function`: objects of S3 and queues of SQS with"
            " few records are taken each minute by the function of an instance with `feed_take`;"
            " tasks leave the feed to it, and so does `lakebed feed run`, unless `--only` names it."
            " A lake in a directory has no functions: there it makes no difference."
        ),
    ] = "workers"
    policy: Annotated[
        str,
        Meta(
            max_length=63, description="Of landing, and of connections that name none of their own."
        ),
    ] = DEFAULT_POLICY
    rotate_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 30,
            description="Bytes of records that are landed together at the most. More: fewer, larger"
            " files, and more memory.",
        ),
    ] = 64 << 20
    rotate_records: Annotated[
        int,
        Meta(ge=1, le=100_000_000, description="Records that are landed together at the most."),
    ] = 1_000_000
    rotate_seconds: Annotated[
        float,
        Meta(ge=0.1, le=3_600, description="How long a record waits to be landed at the most."),
    ] = 10.0
    rotate_idle_seconds: Annotated[
        float, Meta(ge=0, le=3_600, description="How long it waits when the source has no more.")
    ] = 1.0
    version: Annotated[
        int,
        Meta(
            ge=1,
            le=FILE_VERSION_MAX,
            description="Of a feed that is run from its file: raise it when the definition changes."
            " Where the registry has it, that gives the version.",
        ),
    ] = 1


class Feed(FeedSettings, frozen=True, kw_only=True):
    """A feed: where its records come from, and how they are read.

    source: of the records.
    Other fields: as the page of settings describes them.
    """

    name: str
    source: Source

    @property
    def decoder_settings(self) -> DecoderSettings | None:
        """Return how its records are read; None: it has no decoder."""
        at = at_of("feed", self.name, "decoder")
        return decoder_settings_of(self.decoder, at=at) if self.decoder else None

    @property
    def files(self) -> str:
        """Return the pattern of a feed of growing files.

        Raises:
            InvalidError: the source is another one.
        """
        if isinstance(self.source, FilesFeed):
            return self.source.files
        kind = self.source.kind
        raise InvalidError(
            "the feed is not a feed of files",
            at=at_of("feed", self.name, "source"),
            source=kind,
            hint="give its source as `files = PATTERN`",
        )


class FeedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a feed file, or of several.

    said: of each definition, as it is stored.
    """

    feeds: Mapping[str, Feed] = {}
    connections: Mapping[str, DefinedConnection] = {}
    policies: Mapping[str, PolicyDefinition] = {}
    said: Mapping[tuple[DefinitionKind, str], Mapping[str, Any]] = {}


def landing_table_name(feed: str) -> TableName:
    """Return the name of a feed's landing table. Raises: InvalidError: no table can have it."""
    return table_name(f"{feed}_landing")


def quarantine_name(feed: str) -> TableName:
    """Return the name of a feed's quarantine table. Raises: InvalidError: no table can have it."""
    return table_name(f"{feed}{QUARANTINE_SUFFIX}")


def feeds_of(text: str) -> list[Feed]:
    """Return the feeds that a file says, in its order.

    Raises:
        InvalidError: it is no TOML, or says what there is not. It names the field, and the nearest.
    """
    found = feed_file(text)
    if not found.feeds:
        hint = 'write a section [feed.NAME] with `files = "PATTERN"`'
        raise InvalidError("a file of feeds without a feed", hint=hint)
    return list(found.feeds.values())


def feed_file(text: str) -> FeedFile:
    """Return all that a file says. What it names in other files is not looked for.

    Raises:
        InvalidError: as `feeds_of`.
    """
    try:
        parsed = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidError(
            "a file of feeds is no TOML",
            problem=error,
            hint="mend it at that line and column; texts stand in quotes",
        ) from None
    check_names(parsed, KINDS, "")
    said: dict[tuple[DefinitionKind, str], Mapping[str, Any]] = {}
    for kind in KINDS:
        named = parsed.get(kind, {})
        if not isinstance(named, dict):
            hint = f"write a section [{kind}.NAME]"
            raise InvalidError(f"a {kind} has a name", at=kind, hint=hint)
        for name, fields in named.items():
            at = at_of(kind, name)
            said[kind, name] = plain(dict(section(fields, at)), at)
    return file_of(said)


def joined(files: Mapping[str, FeedFile]) -> FeedFile:
    """Return what several files say together. files: by what they are called.

    Raises:
        InvalidError: two of them define the same.
    """
    said: dict[tuple[DefinitionKind, str], Mapping[str, Any]] = {}
    by_file: dict[tuple[DefinitionKind, str], str] = {}
    for called, file in files.items():
        for key in file.said:
            if key in by_file:
                hint = "define it in one of them"
                raise InvalidError(
                    "two files define the same",
                    at=at_of(*key),
                    files=f"{by_file[key]}, {called}",
                    hint=hint,
                )
            by_file[key] = called
        said |= file.said
    return file_of(said)


def file_of(said: Mapping[tuple[DefinitionKind, str], Mapping[str, Any]]) -> FeedFile:
    """Return what definitions say, each checked by itself. Raises: InvalidError."""
    feeds, connections, policies = {}, {}, {}
    for (kind, name), fields in said.items():
        match kind:
            case "feed":
                feeds[name] = feed_of(name, fields)
            case "connection":
                connections[name] = connection_of(name, fields)
            case "policy":
                policies[name] = policy_definition(name, fields)
    return FeedFile(feeds=feeds, connections=connections, policies=policies, said=dict(said))


def feed_of(name: str, said: object) -> Feed:
    """Return the feed that a section says. Raises: InvalidError: it says what there is not."""
    at = at_of("feed", name)
    fields = dict(section(said, at))
    landing_table_name(name)
    short = fields.pop("files", None)
    if short is not None and "source" in fields:
        hint = "give `files`, or `source`"
        raise InvalidError("a feed has one source", at=f"{at}.files", hint=hint)
    source = fields.pop("source", None if short is None else {"files": short})
    names = [*FeedSettings.__struct_fields__, "source", "files"]
    check_names(fields, names, at)
    others = checked(fields, FeedSettings, at)
    if others.decoder:
        decoder_settings_of(others.decoder, at=f"{at}.decoder")
    if source is None:
        hint = 'say where: `files = "PATTERN"`, or `source = { kafka = ... }`'
        raise InvalidError("a feed without a source", at=at, hint=hint)
    where = f"{at}.source" if short is None else at
    found = source_of(source, where)
    if not found.is_ordered and others.landing is False:
        hint = "leave `landing` out: what cannot be read twice in the same order is landed first"
        raise InvalidError("a source that needs landing", at=f"{at}.landing", hint=hint)
    if others.run == "function" and not isinstance(found, IN_FUNCTIONS):
        hint = (
            "leave `run` out: a function takes objects of S3 and messages of SQS, and nothing else"
        )
        raise InvalidError(
            "a source that no function takes", at=f"{at}.run", source=found.kind, hint=hint
        )
    return Feed(name=name, source=found, **msgspec.structs.asdict(others))
