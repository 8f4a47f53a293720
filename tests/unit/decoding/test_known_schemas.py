"""Schemas are asked for once; ids that the registry does not know, once in a while."""

import json

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.decoding.engines import Resources
from lakebed.decoding.registered import known_schemas
from lakebed.decoding.registered.known_schemas import RETRIES_MAX, UNKNOWN_SECONDS, KnownSchemas
from lakebed.errors import UnavailableError
from lakebed.model.schema import schema_of
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId
from tests.dsl.decoding import decode

pytest.importorskip("fastavro")


class CountingRegistry(MemorySchemaRegistry):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[SchemaId] = []

    def schema(self, id_: SchemaId) -> RegisteredSchema | None:
        self.asked.append(id_)
        return super().schema(id_)


@pytest.fixture
def registry() -> CountingRegistry:
    return CountingRegistry()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_a_schema_is_asked_for_once_for_ever(
    registry: CountingRegistry, clock: VirtualClock
) -> None:
    id_ = registry.register('"long"')
    known = KnownSchemas(registry, clock)
    for _ in range(5):
        assert known.schema(id_) is not None
        clock.sleep(1_000_000)
    assert registry.asked == [id_]


def test_an_unknown_id_is_asked_for_twice_and_then_not_for_a_while(
    registry: CountingRegistry, clock: VirtualClock
) -> None:
    known = KnownSchemas(registry, clock)
    for _ in range(1_000):
        assert known.schema(9) is None
    assert registry.asked == [9, 9]
    assert clock.monotonic() < 1
    clock.sleep(UNKNOWN_SECONDS)
    assert known.schema(9) is None
    assert registry.asked == [9] * 4


def test_an_id_that_is_registered_later_is_known_then(
    registry: CountingRegistry, clock: VirtualClock
) -> None:
    known = KnownSchemas(registry, clock)
    assert known.schema(1) is None
    registry.register('"long"')
    clock.sleep(UNKNOWN_SECONDS)
    assert known.schema(1) is not None


def test_an_id_that_is_known_a_little_later_is_found_by_the_second_try(
    registry: CountingRegistry,
) -> None:
    clock = VirtualClock(on_sleep=lambda _: str(registry.register('"long"')))
    assert KnownSchemas(registry, clock).schema(1) is not None


def test_records_with_ids_that_were_never_registered_take_no_endless_time(
    registry: CountingRegistry, clock: VirtualClock
) -> None:
    known = KnownSchemas(registry, clock)
    for id_ in range(100, 1_100):
        assert known.schema(id_) is None
    assert clock.monotonic() < RETRIES_MAX
    assert len(registry.asked) <= 1_000 + RETRIES_MAX


def test_what_is_kept_is_bounded(
    registry: CountingRegistry, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_schemas, "BYTES_MAX", 1_000)
    monkeypatch.setattr(known_schemas, "UNKNOWN_MAX", 10)
    known = KnownSchemas(registry, clock)
    for number in range(50):
        assert known.schema(registry.register(f'"{"a" * 100}{number}"')) is not None
        assert known.schema(1_000 + number) is None
    assert sum(len(one.text) for one in known._known.values()) <= 1_000
    assert len(known._unknown) <= 10


def test_a_registry_that_is_away_is_asked_again(clock: VirtualClock) -> None:
    class Away(CountingRegistry):
        def schema(self, id_: SchemaId) -> RegisteredSchema | None:
            self.asked.append(id_)
            raise UnavailableError("away")

    away = Away()
    known = KnownSchemas(away, clock)
    for _ in range(2):
        with pytest.raises(UnavailableError):
            known.schema(1)
    assert away.asked == [1, 1]


def test_a_batch_of_records_asks_once_for_each_id(
    registry: CountingRegistry, clock: VirtualClock
) -> None:
    fields = [{"name": "id", "type": "long"}]
    id_ = registry.register(json.dumps({"type": "record", "name": "R", "fields": fields}))
    good, bad = (b"\x00" + n.to_bytes(4, "big") + b"\x02" for n in (id_, 99))
    outcome = decode(
        schema_of(row_keys={"id": "int64"}),
        [good, bad] * 500,
        decoder={"format": "avro"},
        resources=Resources(registry=KnownSchemas(registry, clock)),
    )
    assert outcome.fates == [{"id": 1}, "schema-unknown"] * 500
    assert registry.asked == [id_, 99, 99]
