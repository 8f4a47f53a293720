"""Finds what decoders need beside their settings: registries of schemas, descriptor sets."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from lakebed.bootstrap.app import App
from lakebed.config.decoders import ColumnsOf, DecoderSettings, Format
from lakebed.config.definitions.decoder_registries import RegistryOf
from lakebed.config.definitions.routes import Route
from lakebed.decoding.engines import Resources, check_registered
from lakebed.decoding.registered.known_schemas import KnownSchemas
from lakebed.decoding.routing import columns_of_table, table_decoder
from lakebed.errors import InvalidError, LakebedError
from lakebed.model.schema import Schema
from lakebed.ports.schema_registry import SchemaRegistry
from lakebed.ports.secrets import SECRET_SCHEME

DESCRIPTORS_BYTES_MAX = 16 << 20


def registry_of(app: App, settings: RegistryOf, format_: Format) -> SchemaRegistry:
    """Return a registry of schemas, with its password as it is now. Nothing is asked of it yet;
    what it said before is known to all pipelines of this process. format_: of records.

    Raises:
        InvalidError: what it needs is not installed; no such certificates.
        DeniedError, SecretMissingError, UnavailableError: of its password.
    """
    registry, known = _opened(app, settings, format_), app.feeds.known_schemas
    key = msgspec.structs.replace(settings, subject=""), format_
    found = known.get(key)
    if not isinstance(found, KnownSchemas):
        known[key] = found = KnownSchemas(registry, app.clock)
    found.registry = registry
    return found


def _opened(app: App, settings: RegistryOf, format_: Format) -> SchemaRegistry:
    if settings.is_glue:
        from lakebed.bootstrap.aws import new_clients

        clients = new_clients(app.clock, app.rng, settings.region)
        from lakebed.backends.aws.feeds.schema_registry import GlueSchemaRegistry

        return GlueSchemaRegistry(clients)
    from lakebed.backends.web.asking import WebServer
    from lakebed.backends.web.schema_registry import ConfluentSchemaRegistry

    name = settings.password.removeprefix(SECRET_SCHEME)
    server = WebServer(
        settings.url,
        clock=app.clock,
        user=settings.user,
        password=app.feeds.secrets.read(name) if name else None,
        ca_file=settings.ca_file,
    )
    return ConfluentSchemaRegistry(server, app.clock, is_serialized=format_ == "protobuf")


def resources_of(app: App, settings: DecoderSettings, *, at: str) -> Resources:
    """Return what a decoder needs beside its settings. at: path of its section, for messages.

    Raises:
        InvalidError: a descriptor set cannot be read; as `registry_of`.
        DeniedError, SecretMissingError, UnavailableError: as `registry_of`.
    """
    registry = registry_of(app, settings.registry, settings.format) if settings.registry else None
    return Resources(registry=registry, descriptors=_descriptors(app, settings, at))


class TableOf(NamedTuple):
    """A table that a connection fills.

    route: None: it fills no other.
    name: in the route.
    """

    schema: Schema
    route: Route | None
    name: str


def check_decoder(
    app: App,
    settings: DecoderSettings,
    columns: ColumnsOf,
    table: TableOf,
    *,
    at: str,
    decoder_at: str,
) -> None:
    """Check that a decoder and columns fit a table. Its registry is asked only for the subject that
    the decoder names. at, decoder_at: paths of the sections, for messages.

    Raises:
        InvalidError: they do not fit, or the registry has no such subject.
        DeniedError, SecretMissingError, UnavailableError: the registry cannot be asked.
    """
    descriptors = _descriptors(app, settings, decoder_at)
    registry = _NotAsked() if settings.registry else None
    resources = Resources(registry=registry, descriptors=descriptors)
    schema, route, name = table
    table_decoder(settings, columns, schema, route, name, resources=resources, at=at)
    if settings.registry is None or not settings.registry.subject:
        return
    subject, where = settings.registry.subject, f"{decoder_at}.registry.subject"
    found = registry_of(app, settings.registry, settings.format).newest(subject)
    if found is None:
        hint = "register a schema first, or name another subject"
        raise InvalidError(
            "the registry has no such subject", at=where, subject=ascii(subject)[1:201], hint=hint
        )
    own = columns if route is None else columns_of_table(columns, schema, name, at)
    check_registered(settings, own, schema, found, at=at, subject_at=where)


class _NotAsked:
    """A registry that is there, for checks that need nothing of it."""

    def schema(self, id_: object) -> None:
        """Refuse."""
        raise AssertionError(id_)

    newest = schema


def _descriptors(app: App, settings: DecoderSettings, at: str) -> bytes:
    if not settings.descriptors:
        return b""
    name = settings.descriptors
    try:
        found = _read(app, name)
    except (LakebedError, OSError) as error:
        if isinstance(error, LakebedError) and not isinstance(error, InvalidError):
            raise
        hint = "name a file of this machine, s3://BUCKET/KEY or https://HOST/PATH"
        why = getattr(error, "strerror", None) or getattr(error, "message", None)
        raise InvalidError(
            "the descriptor set cannot be read",
            at=f"{at}.descriptors",
            file=ascii(name)[1:201],
            why=why,
            hint=hint,
        ) from None
    if len(found) > DESCRIPTORS_BYTES_MAX:
        hint = f"give at most {DESCRIPTORS_BYTES_MAX:,} bytes"
        raise InvalidError("the descriptor set is too large", at=f"{at}.descriptors", hint=hint)
    return found


def _read(app: App, name: str) -> bytes:
    if "://" not in name:
        return _head_of(Path(name))
    files = app.url_files()
    found = files.find(name)
    if len(found) != 1 or found[0].size > DESCRIPTORS_BYTES_MAX:
        raise InvalidError(
            "the name is not that of one file of a descriptor set's size",
            hint=f"name one file of at most {DESCRIPTORS_BYTES_MAX:,} bytes",
        )
    with files.on_disk(found[0]) as path:
        return _head_of(path)


def _head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(DESCRIPTORS_BYTES_MAX + 1)
