"""What every registry of schemas promises."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.backends.web.asking import WebServer
from lakebed.backends.web.schema_registry import ConfluentSchemaRegistry
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


@pytest.fixture(params=[in_memory, on_the_web])
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
    no_ids = [registered.unknown, 0, -1, 2**31, 2**32 - 1, UUID(int=7)]
    assert [registered.registry.schema(id_) for id_ in no_ids] == [None] * len(no_ids)


def test_a_subject_has_a_newest_schema(registered: Registered) -> None:
    for text in ['"int"', '"long"']:
        registered.register(text, subject="orders-value")
    found = registered.registry.newest("orders-value")
    assert found is not None
    assert found.text == '"long"'
    no_subjects = ["orders", "orders-value/versions/1", "", "ä #?", "a" * 300]
    assert [registered.registry.newest(name) for name in no_subjects] == [None] * 5
