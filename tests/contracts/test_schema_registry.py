"""What every registry of schemas promises."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.stub import validate_parameters
from botocore.validate import ParamValidator

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.feeds.schema_registry import GlueSchemaRegistry
from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.backends.web.asking import WebServer
from lakebed.backends.web.schema_registry import ConfluentSchemaRegistry
from lakebed.errors import DeniedError, InvalidError, LakebedError, UnavailableError
from lakebed.ports.schema_registry import SchemaId, SchemaRegistry
from tests.servers.confluent import confluent_server


class Registered(NamedTuple):
    """unknown: an id that the registry never gave."""

    registry: SchemaRegistry
    register: Callable[..., SchemaId]
    unknown: SchemaId


@contextmanager
def in_memory() -> Iterator[Registered]:
    registry = MemorySchemaRegistry()
    yield Registered(registry, registry.register, 77)


@contextmanager
def on_the_web() -> Iterator[Registered]:
    with confluent_server() as server:
        clock = VirtualClock()
        registry = ConfluentSchemaRegistry(WebServer(server.url, clock=clock), clock)
        yield Registered(registry, server.register, 77)


class GlueClient:
    """Answers as Glue does, in shapes that botocore's model of it has."""

    def __init__(self) -> None:
        self.versions: dict[str, dict[str, Any]] = {}
        self.newest: dict[tuple[str, str], str] = {}
        self.fails: str = ""
        model = botocore.session.get_session().get_service_model("glue")
        self._operation = model.operation_model("GetSchemaVersion")

    def register(
        self,
        text: str,
        *,
        kind: str = "avro",
        subject: str = "",
        status: str = "AVAILABLE",
        **_: object,
    ) -> UUID:
        known = {json.dumps(said): id_ for id_, said in self.versions.items()}
        said = {"SchemaDefinition": text, "DataFormat": kind.upper(), "Status": status}
        id_ = known.get(json.dumps(said), str(UUID(int=len(self.versions) + 1)))
        self.versions[id_] = said
        registry, _, name = subject.rpartition("/")
        self.newest[registry or "default-registry", name] = id_
        return UUID(id_)

    def get_schema_version(self, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - as boto3
        report = ParamValidator().validate(arguments, self._operation.input_shape)
        assert not report.has_errors(), report.generate_report()
        named = arguments.get("SchemaId", {})
        of_name = self.newest.get((named.get("RegistryName"), named.get("SchemaName")), "")
        id_ = arguments.get("SchemaVersionId", of_name)
        if self.fails or id_ not in self.versions:
            error = {"Code": self.fails or "EntityNotFoundException", "Message": "secret"}
            said = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(said, "GetSchemaVersion")
        answer = {"SchemaVersionId": id_} | self.versions[id_]
        validate_parameters(answer, self._operation.output_shape)
        return answer


def glue_registry(client: GlueClient, monkeypatch: pytest.MonkeyPatch) -> GlueSchemaRegistry:
    clients = AmazonClients(clock=VirtualClock(), rng=random.Random(7), region_name="us-east-1")
    monkeypatch.setattr(AmazonClients, "glue", client)
    return GlueSchemaRegistry(clients)


@contextmanager
def at_amazon() -> Iterator[Registered]:
    client = GlueClient()
    with pytest.MonkeyPatch.context() as patched:
        yield Registered(glue_registry(client, patched), client.register, UUID(int=77))


@pytest.fixture(params=[in_memory, on_the_web, at_amazon])
def registered(request: pytest.FixtureRequest) -> Iterator[Registered]:
    with request.param() as made:
        yield made


def test_a_schema_is_found_by_its_id(registered: Registered) -> None:
    ids = [registered.register('"long"'), registered.register('{"type": "string"}')]
    found = [registered.registry.schema(id_) for id_ in ids]
    assert [(one.text, one.kind, one.references) for one in found if one is not None] == [
        ('"long"', "avro", ()),
        ('{"type": "string"}', "avro", ()),
    ]


def test_a_schema_says_of_which_kind_it_is(registered: Registered) -> None:
    id_ = registered.register('{"type": "object"}', kind="json")
    found = registered.registry.schema(id_)
    assert found is not None
    assert found.kind == "json"


def test_a_schema_keeps_its_id(registered: Registered) -> None:
    register = registered.register
    assert register('"long"', subject="a") == register('"long"', subject="a")


def test_an_unknown_id_has_no_schema(registered: Registered) -> None:
    registered.register('"long"')
    no_ids: list[SchemaId] = [registered.unknown, 0, -1, 2**31, 2**32 - 1, UUID(int=7)]
    assert [registered.registry.schema(id_) for id_ in no_ids] == [None] * len(no_ids)


def test_a_subject_has_a_newest_schema(registered: Registered) -> None:
    for text in ['"int"', '"long"']:
        registered.register(text, subject="orders-value")
    found = registered.registry.newest("orders-value")
    assert found is not None
    assert found.text == '"long"'
    no_subjects = ["orders", "orders-value/versions/1", "", "ä #?", "a" * 300]
    assert [registered.registry.newest(name) for name in no_subjects] == [None] * 5


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("AccessDeniedException", DeniedError),
        ("ThrottlingException", UnavailableError),
        ("InvalidInputException", InvalidError),
    ],
)
def test_what_glue_refuses_is_no_answer(
    code: str, error: type[LakebedError], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = GlueClient()
    client.fails = code
    with pytest.raises(error) as caught:
        glue_registry(client, monkeypatch).schema(UUID(int=1))
    if error is DeniedError:
        assert "glue:GetSchemaVersion" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_version_that_glue_has_not_checked_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    client = GlueClient()
    id_ = client.register('"long"', status="PENDING")
    assert glue_registry(client, monkeypatch).schema(id_) is None


def test_a_schema_of_glue_is_named_with_its_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    client = GlueClient()
    client.register('"long"', subject="shop/orders")
    registry = glue_registry(client, monkeypatch)
    assert registry.newest("shop/orders") is not None
    assert registry.newest("orders") is None


def test_schemas_of_protobuf_are_asked_for_as_descriptors_with_the_names_of_imports() -> None:
    with confluent_server() as server:
        clock = VirtualClock()
        web = WebServer(server.url, clock=clock)
        registry = ConfluentSchemaRegistry(web, clock, is_serialized=True)
        server.serialized = {"message A {}": "QQ==", 'import "a.proto";': "Qg=="}
        server.register("message A {}", kind="protobuf", subject="a.proto")
        references = (("a.proto", 1),)
        id_ = server.register('import "a.proto";', kind="protobuf", references=references)
        found = registry.schema(id_)
        assert found is not None
        assert (found.text, found.references, found.names) == ("Qg==", ("QQ==",), ("a.proto",))
        avro = registry.schema(server.register('"long"'))
        assert avro is not None, "of another kind it is not asked for serialized"
        assert avro.text == '"long"'
        plain = ConfluentSchemaRegistry(web, clock).schema(id_)
        assert plain is not None
        assert plain.text == 'import "a.proto";'


def test_a_registry_that_gives_texts_of_protobuf_alone_is_refused() -> None:
    with confluent_server() as server:
        clock = VirtualClock()
        web = WebServer(server.url, clock=clock)
        registry = ConfluentSchemaRegistry(web, clock, is_serialized=True)
        id_ = server.register('syntax = "proto3";', kind="protobuf")
        with pytest.raises(InvalidError, match=r"as text alone .*descriptors"):
            registry.schema(id_)
