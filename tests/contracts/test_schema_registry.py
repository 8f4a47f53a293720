"""What every registry of schemas promises."""

from collections.abc import Callable

import pytest

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.ports.schema_registry import SchemaRegistry

Registered = tuple[SchemaRegistry, Callable[[str], int]]


@pytest.fixture
def registered() -> Registered:
    registry = MemorySchemaRegistry()
    return registry, registry.register


def test_a_schema_is_found_by_its_id(registered: Registered) -> None:
    registry, register = registered
    ids = [register('"long"'), register('{"type": "string"}')]
    assert [registry.schema(id_) for id_ in ids] == ['"long"', '{"type": "string"}']


def test_a_schema_keeps_its_id(registered: Registered) -> None:
    _, register = registered
    assert register('"long"') == register('"long"')


@pytest.mark.parametrize("id_", [0, 7, 2**32 - 1])
def test_an_unknown_id_has_no_schema(registered: Registered, id_: int) -> None:
    assert registered[0].schema(id_) is None
