"""Random routes over random records: each record belongs to one table, or to none, and each table's
ledger adds up."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.config.decoders import ColumnsOf, DecoderSettings, Format
from lakebed.config.definitions.routes import Route
from lakebed.decoding.decoder import Decoder
from lakebed.decoding.engines import decoder_of
from lakebed.decoding.raw_records import raw_records
from lakebed.decoding.routing import table_decoder
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.decode_records import DecodeRecords, RecordRules
from lakebed.feeds.made_rows import KnownBefore
from lakebed.model.feeds.positions import connection_id
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.schema import schema_of
from lakebed.ports.record_source import Records

SCHEMA = schema_of(row_keys={"id": "int64"}, values={"note": "string?"})
NAMES = ["t0", "t1", "t2"]
VALUES = ["A", "B", "", "a.b", "é", "7"]
MISSING = "missing"
RECORD = st.tuples(
    st.sampled_from([*VALUES, "not in any route", None, MISSING, 7, ["A"]]),
    st.sampled_from([1, -5, "no number", None]),
    st.booleans(),
)


@st.composite
def routes(draw: st.DrawFn) -> Route:
    """Return some route."""
    tables = draw(st.dictionaries(st.sampled_from(VALUES), st.sampled_from(NAMES), min_size=1))
    otherwise = draw(st.sampled_from(["", "", *NAMES]))
    unrouted = "quarantine" if otherwise else draw(st.sampled_from(["quarantine", "filter"]))
    return Route(field="type", tables=tables, otherwise=otherwise, unrouted=unrouted)


def payload(record: tuple[Any, Any, bool], form: str) -> bytes:
    """Return the bytes of a record; some of them cannot be read."""
    type_, id_, is_whole = record
    said = {"id": id_, "note": "n"} | ({} if type_ == MISSING else {"type": type_})
    whole = json.dumps(said).encode() if form == "json" else msgspec.msgpack.encode(said)
    return whole if is_whole else whole[:-1]


def fates(decoder: Decoder, records: pa.RecordBatch) -> list[tuple[int, Any]]:
    """Return the verdict of each record, with its row."""
    found = decoder.decode(records)
    rows = dict(zip(found.record.to_pylist(), found.rows.to_pylist(), strict=True))
    assert list(rows) == sorted(rows)
    assert len(found.time) == len(rows)
    return [(int(code), rows.get(index)) for index, code in enumerate(found.verdicts)]


@pytest.mark.parametrize("form", ["json", "msgpack"])
@settings(max_examples=60)
@given(route=routes(), records=st.lists(RECORD, max_size=12), cut=st.integers(0, 12))
def test_each_record_is_of_one_table_or_of_none(
    form: Format, route: Route, records: list[tuple[Any, Any, bool]], cut: int
) -> None:
    how, columns = DecoderSettings(format=form), ColumnsOf()
    values = pa.array([payload(one, form) for one in records], pa.binary())
    batch = raw_records(value=values, position=pa.array(range(len(records)), pa.int64()))
    plain = fates(decoder_of(how, columns, SCHEMA), batch)
    by_table = {}
    for name in route.names:
        decoder = table_decoder(how, columns, SCHEMA, route, name)
        by_table[name] = fates(decoder, batch)
        parts = [fates(decoder, batch.slice(0, cut)), fates(decoder, batch.slice(cut))]
        assert by_table[name] == [*parts[0], *parts[1]], "whatever batch they come in"
        _check_ledger(decoder, batch)
    lost = Verdict.NO_ROUTE if route.unrouted == "quarantine" else Verdict.IGNORED
    for index, (type_, _, is_whole) in enumerate(records):
        found = {name: said[index] for name, said in by_table.items()}
        if not is_whole or isinstance(type_, int | list):
            assert len(set(map(str, found.values()))) == 1, "it may be of any table"
            assert not {code for code, _ in found.values()} & {Verdict.ROW, Verdict.IGNORED}
            continue
        owner = route.tables.get(type_ if type_ is not None else MISSING, route.otherwise)
        for name, fate in found.items():
            expected = plain[index] if name == owner else (Verdict.IGNORED, None)
            assert fate == (expected if owner else (lost, None))


def _check_ledger(decoder: Decoder, batch: pa.RecordBatch) -> None:
    if not batch.num_rows:
        return
    make = DecodeRecords(FeedConnection(connection_id("ab"), 1), SCHEMA, decoder, RecordRules())
    records = Records(begin=0, end=batch.num_rows, count=batch.num_rows, size=1, batch=batch)
    made = make("split", records, KnownBefore())
    kept = 0 if made.quarantine is None else made.quarantine.num_rows
    assert made.quarantined == kept
    assert made.read == batch.num_rows == made.rows_count + made.filtered + made.quarantined


def test_a_route_reads_nothing_else_of_a_record_of_another_table() -> None:
    route = Route(field="type", tables={"A": "t0", "B": "t1"})
    how, columns = DecoderSettings(format="json"), ColumnsOf(unknown="freeze")
    batch = raw_records(
        value=pa.array([b'{"type": "A", "id": 1}', b'{"type": "B", "what": {"else": 1}}']),
        position=pa.array([0, 1], pa.int64()),
    )
    found = fates(table_decoder(how, columns, SCHEMA, route, "t0"), batch)
    assert found == [(Verdict.ROW, {"id": 1, "note": None}), (Verdict.IGNORED, None)]
    found = fates(table_decoder(how, columns, SCHEMA, route, "t1"), batch)
    assert [code for code, _ in found] == [Verdict.IGNORED, Verdict.UNKNOWN_FIELD]


def test_a_route_may_lead_by_a_value_that_is_a_column_or_lies_in_one() -> None:
    schema = schema_of(
        row_keys={"id": "int64"},
        values={"type": "string", "meta": {"struct": [{"name": "kind", "type": "string"}]}},
    )
    batch = raw_records(
        value=pa.array([b'{"id": 1, "type": "A", "meta": {"kind": "x"}}']),
        position=pa.array([0], pa.int64()),
    )
    for field, value in (("type", "A"), ("meta.kind", "x")):
        route = Route(field=field, tables={value: "t0"})
        decoder = table_decoder(
            DecoderSettings(format="json"), ColumnsOf(unknown="freeze"), schema, route, "t0"
        )
        row = {"id": 1, "type": "A", "meta": {"kind": "x"}}
        assert fates(decoder, batch) == [(Verdict.ROW, row)]
