"""Schemas in AWS Glue's schema registry, by the UUIDs of their versions."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_SCHEMA
from lakebed.errors import InvalidError
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId

_USABLE: Final = "AVAILABLE"
_DEFAULT_REGISTRY: Final = "default-registry"


class GlueSchemaRegistry:
    """Versions of schemas of one account and region."""

    def __init__(self, clients: AmazonClients) -> None:
        self._clients = clients

    def schema(self, id_: SchemaId) -> RegisteredSchema | None:
        """Return a schema."""
        if not isinstance(id_, UUID):
            return None
        return self._asked(str(id_), SchemaVersionId=str(id_))

    def newest(self, subject: str) -> RegisteredSchema | None:
        """Return the newest schema of a subject. subject: `REGISTRY/SCHEMA`, or `SCHEMA` of the
        registry that each account has."""
        registry, _, name = subject.rpartition("/")
        if not name:
            return None
        return self._asked(
            subject,
            SchemaId={"RegistryName": registry or _DEFAULT_REGISTRY, "SchemaName": name},
            SchemaVersionNumber={"LatestVersion": True},
        )

    def _asked(self, named: str, **arguments: object) -> RegisteredSchema | None:
        requests = self._clients.requests(AMAZON_SCHEMA, ascii(named)[1:201])
        request = Request(what="reading a schema", needs="glue:GetSchemaVersion")
        try:
            answer: dict[str, Any] = requests.run(
                request, lambda: self._clients.glue.get_schema_version(**arguments)
            )
        except InvalidError as error:
            if "EntityNotFound" not in str(error.facts.get("why")):
                raise
            return None
        if answer.get("Status", _USABLE) != _USABLE:  # not yet, or no longer
            return None
        kind = str(answer.get("DataFormat", "")).lower()
        return RegisteredSchema(kind=kind, text=str(answer.get("SchemaDefinition", "")))
