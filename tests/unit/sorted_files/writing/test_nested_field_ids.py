"""Elements, keys and values of nested columns have field ids of their own in Parquet, whoever wrote
the file and whatever was merged into it; files without them are read as ever."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.model.names import FileName
from lakebed.model.ranges import EVERYTHING
from lakebed.model.schema import schema_from_json, schema_json
from lakebed.model.types import NUMBERED_MAX, PARTS_FROM, PARTS_MAX, part_numbers
from lakebed.sorted_files.format import arrow_schema as columns
from lakebed.sorted_files.format.arrow_schema import FIELD_ID, arrow_schema
from lakebed.sorted_files.sorting import engines
from tests.unit.sorted_files.lakes import Lake, batch_of, path

DEEP = {"map": ["string", {"list": {"struct": [{"name": "x", "type": {"list": "int8"}}]}}]}
SCHEMA = schema_from_json(
    {
        "row_keys": [{"name": "k", "type": "int64"}],
        "values": [
            {"name": "tags", "type": {"list": "string"}, "nullable": True},
            {"name": "deep", "type": DEEP, "nullable": True},
        ],
    }
)
TAGS, DEEP_NUMBER, X = (PARTS_FROM + PARTS_MAX * n for n in (2, 3, 4))
IDS = {
    "k": 1,
    "tags": 2,
    "tags.element": TAGS,
    "deep": 3,
    "deep.key": DEEP_NUMBER,
    "deep.value": DEEP_NUMBER + 1,
    "deep.value.element": DEEP_NUMBER + 2,
    "deep.value.element.x": 4,
    "deep.value.element.x.element": X,
}


def rows(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "k": n,
            "tags": None if n % 5 == 0 else [f"t{n}"] * (n % 3),
            "deep": None if n % 7 == 0 else [("a", [{"x": [n % 100, None]}, None]), ("b", None)],
        }
        for n in range(first, first + count)
    ]


def ids_within(field: pa.Field, name: str) -> Iterator[tuple[str, int | None]]:
    told = (field.metadata or {}).get(FIELD_ID)
    yield name, None if told is None else int(told)
    kind = field.type
    inner = []
    if pa.types.is_map(kind):
        inner = [("key", kind.key_field), ("value", kind.item_field)]
    elif pa.types.is_list(kind):
        inner = [("element", kind.value_field)]
    elif pa.types.is_struct(kind):
        inner = [(kind.field(n).name, kind.field(n)) for n in range(kind.num_fields)]
    for part, one in inner:
        yield from ids_within(one, f"{name}.{part}")


def ids_in(schema: pa.Schema) -> dict[str, int | None]:
    return dict(pair for field in schema for pair in ids_within(field, field.name))


def file_of(lake: Lake, at: str) -> pq.ParquetFile:
    size = lake.objects.size_of(at)
    assert size is not None
    (body,) = lake.objects.read(at, [(0, size)])
    return pq.ParquetFile(pa.BufferReader(body))


@pytest.fixture(params=["plain", "compiled"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "compiled":
        pytest.importorskip("numba")
    rows_min = 0 if request.param == "compiled" else 1 << 60
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", rows_min)


def test_every_part_of_a_schema_has_an_id_of_its_own() -> None:
    assert ids_in(arrow_schema(SCHEMA)) == IDS
    assert len(set(IDS.values())) == len(IDS)
    stored = schema_from_json(schema_json(SCHEMA))
    assert ids_in(arrow_schema(stored)) == IDS, "what is stored says enough"


def test_ids_follow_from_a_fields_number_and_fit_into_31_bits() -> None:
    every = [id_ for number in (1, 2, NUMBERED_MAX) for id_ in part_numbers(number)]
    assert len(set(every)) == len(every) == 3 * PARTS_MAX
    assert NUMBERED_MAX < PARTS_FROM <= min(every)
    assert max(every) < (1 << 31) - 1 - 200, "Iceberg keeps the last ones for itself"
    assert list(part_numbers(NUMBERED_MAX + 1)) == []


@pytest.mark.usefixtures("engine")
def test_a_file_has_the_ids_of_elements_keys_and_values(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.sort_and_write(SCHEMA, [batch_of(SCHEMA, rows(0, 3_000))])
    assert ids_in(file_of(lake, path(0)).schema_arrow) == IDS


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("apart", [True, False], ids=["apart", "interleaved"])
def test_a_merge_gives_ids_also_to_rows_of_files_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    lake, every = Lake(tmp_path), rows(0, 6_000)
    old, new = (every[:3_000], every[3_000:]) if apart else (every[::2], every[1::2])
    with monkeypatch.context() as patch:
        patch.setattr(columns, "part_numbers", lambda _: iter(()))
        arrow_schema.cache_clear()
        before = lake.part(lake.sort_and_write(SCHEMA, [batch_of(SCHEMA, old)]))
    arrow_schema.cache_clear()
    assert ids_in(file_of(lake, before.path).schema_arrow)["tags.element"] is None
    after = lake.part(lake.sort_and_write(SCHEMA, [batch_of(SCHEMA, new)]))
    lake.files.merge_into_file(
        SCHEMA,
        [before, after],
        name=FileName(b"merged" + bytes(10)),
        path="merged.parquet",
        key_range=EVERYTHING,
    )
    merged = file_of(lake, "merged.parquet")
    assert ids_in(merged.schema_arrow) == IDS
    assert merged.read().to_pylist() == pa.Table.from_batches([batch_of(SCHEMA, every)]).to_pylist()
