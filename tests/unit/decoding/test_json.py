"""JSON payloads become rows, or get a verdict that depends on nothing but themselves."""

import json

import pyarrow as pa
import pytest

from lakebed.decoding import engines
from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode, records_of

FLAT = schema_of(
    row_keys={"id": "int64"},
    values={"name": "string?", "size": "float64?", "small": "int8?", "amount": "decimal128(6,2)?"},
)
NOTHING = {"name": None, "size": None, "small": None, "amount": None}


def row(id_: int, **values: object) -> dict[str, object]:
    return {"id": id_, **NOTHING, **values}


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b'{"id":1', "unparsable"),
        (b'{"id":1,}', "unparsable"),
        (b'{"id":01}', "unparsable"),
        (b'{"id":1} x', "not-one-object"),
        (b"{'id':1}", "unparsable"),
        (b'{"id":1,"size":NaN}', "unparsable"),
        (b'{"id":1,"other":-Infinity}', "unparsable"),
        (b'{"id":1,"size":Inf}', "unparsable"),
        (b'{"id":1,"name":"\\ud800"}', "unparsable"),
        (b'{"id":1,"name":"a\nb"}', "unparsable"),
        (b'\xef\xbb\xbf{"id":1}', "unparsable"),
        (b'{"id":1}\x00', "not-one-object"),
        (b'\x00{"id":1}', "unparsable"),
        (b'{"id":1}{"id":2}', "not-one-object"),
        (b'{"id":1} null', "not-one-object"),
        (b"null", "not-one-object"),
        (b"[]", "not-one-object"),
        (b"7", "not-one-object"),
        (b'"text"', "not-one-object"),
        (b" \n ", "not-one-object"),
        (b'{"id":1,"id":1}', "duplicate-field"),
        (b'{"id":1,"name":"a","name":"b"}', "duplicate-field"),
        (b"{}", "missing-field"),
        (b'{"name":"a"}', "missing-field"),
        (b'{"id":null}', "null-in-required"),
        (b'{"id":"x"}', "type-mismatch"),
        (b'{"id":1.5}', "type-mismatch"),
        (b'{"id":true}', "type-mismatch"),
        (b'{"id":[1]}', "type-mismatch"),
        (b'{"id":{"a":1}}', "type-mismatch"),
        (b'{"id":1,"name":5}', "type-mismatch"),
        (b'{"id":1,"size":"1.5"}', "type-mismatch"),
        (b'{"id":9223372036854775808}', "out-of-range"),
        (b'{"id":1,"small":128}', "out-of-range"),
        (b'{"id":1,"size":1e400}', "out-of-range"),
        (b'{"id":1,"size":2e308}', "out-of-range"),
        (b'{"id":1,"size":' + b"9" * 400 + b"}", "out-of-range"),
        (b'{"id":1,"other":1e309}', "out-of-range"),
        (b'{"id":1,"amount":1.255}', "out-of-range"),
        (b'{"id":1,"amount":12345.00}', "out-of-range"),
        (b'{"id":1,"amount":12345}', "out-of-range"),
        (b'{"id":1,"amount":20062827603801437255781353093375376324}', "out-of-range"),
        (b'{"id":1,"amount":"1e70"}', "out-of-range"),
        (b'{"id":0E80}', "out-of-range"),
        (b'{"id":"0E99999"}', "out-of-range"),
        (b'{"id":1,"amount":0.0001E70}', "out-of-range"),
        (b'{"id":1,"name":"\xff"}', "not-utf8"),
        (b'{"id":1,"other":"\xc3"}', "not-utf8"),
        (b'{"id":' + b"9" * 5000 + b"}", "out-of-range"),
    ],
)
def test_a_bad_record_gets_its_verdict_and_its_neighbours_stay_what_they_are(
    payload: bytes, code: str
) -> None:
    alone = decode(FLAT, [payload])
    assert alone.fates == [code]
    between = decode(FLAT, [b'{"id":7,"name":"a"}', payload, b'{"id":"8","size":2}', payload])
    assert between.fates == [row(7, name="a"), code, row(8, size=2.0), code]
    assert between.detail(1) == between.detail(3) == alone.detail(0)


@pytest.mark.parametrize(
    ("payload", "wanted"),
    [
        (b'{"id":1}', row(1)),
        (b' \t\r\n{ \n"id" : 1 \n} \n', row(1)),
        (b" " * 100 + b"{" + b" " * 100 + b'"id":1}', row(1)),
        (b'{"id":"-12"}', row(-12)),
        (b'{"id":3.0,"small":1e2}', row(3, small=100)),
        (b'{"id":-9223372036854775808}', row(-(2**63))),
        (b'{"id":1,"size":3}', row(1, size=3.0)),
        (b'{"id":1,"size":0.1e1}', row(1, size=1.0)),
        (b'{"id":1,"name":"NaN, -Infinity: Info","other":[1,{"id":2}]}',) * 2,
        (b'{"id":1,"name":"\\u00e9\\ud83d\\ude00\\n\\u0001"}', row(1, name="é😀\n\x01")),
        (b'{"\\u0069d":1}', row(1)),
        (b'{"id":1,"x":1,"x":2}', row(1)),
        (b'{"id":1,"name":"}{\\"id\\":2"}', row(1, name='}{"id":2')),
    ],
)
def test_what_is_one_object_becomes_a_row_among_all_neighbours(
    payload: bytes, wanted: object
) -> None:
    if wanted == payload:
        wanted = row(1, name="NaN, -Infinity: Info")
    assert decode(FLAT, [payload]).fates == [wanted]
    bad = [b"{", b'{"id":1}{"id":2}', b"", b'{"id":1,"x":[']
    assert decode(FLAT, [*bad, payload, *bad, payload]).fates.count(wanted) == 2


def test_payloads_that_complete_each_other_never_lend_their_values() -> None:
    schema = schema_of(row_keys={"id": "int64"}, values={"a": "int64?"})
    pairs = [
        (b'{"id":1,"x":[', b'{"id":2}]}'),
        (b'{"id":1}{"id":2,"x":', b'{"id":3}}'),
        (b'{"id":1}{"\\u0001":1,"x":[', b"{}]}"),
        (b'{"id":1,"x":"', b'{"id":2}"}'),
        (b'{"id":1', b'{"a":2}}'),
        (b"{}{}", b"{"),
        (b'{"id":1}\n{"id":2}', b'{"id":3'),
    ]
    for first, second in pairs:
        fates = decode(schema, [first, second, b'{"id":9}']).fates
        assert [type(fate) for fate in fates] == [str, str, dict], (first, second)


def test_a_name_that_ordinals_could_have_is_no_ordinal() -> None:
    schema = schema_of(row_keys={"id": "int64"})
    codes = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0010", "0011", "0012")
    each = [b'{"\\u%b":5,"id":%d}' % (code.encode(), n) for n, code in enumerate(codes)]
    assert decode(schema, each).fates == [{"id": n} for n in range(len(codes))]


def test_a_field_may_have_a_name_that_ordinals_could_have() -> None:
    schema = schema_of(row_keys={"id": "int64"}, values={"x": "int64?"})
    connection = {"columns": {"id": "id", "x": "\x01"}}
    payloads = [b'{"id":1}', b'{"id":2,"\\u0001":5}']
    assert decode(schema, payloads[:1], connection=connection).fates == [{"id": 1, "x": None}]
    wanted = [{"id": 1, "x": None}, {"id": 2, "x": 5}]
    assert decode(schema, payloads, connection=connection).fates == wanted


@pytest.mark.parametrize("name", ["a b", 'a"b', "a\\b", "é", "\t", "{", "a:b,"])
def test_a_field_may_have_any_name(name: str) -> None:
    schema = schema_of(row_keys={"id": "int64"}, values={name: "int64?"})
    payloads = [json.dumps({"id": 1, name: 2}).encode(), b"{", b'{"id":2}']
    wanted = [{"id": 1, name: 2}, "unparsable", {"id": 2, name: None}]
    assert decode(schema, payloads).fates == wanted


def test_unknown_fields_are_counted_in_each_block_whatever_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "BLOCK_RECORDS", 2)
    known, unknown = b'{"id":1}', b'{"id":1,"x":1}'
    payloads = [known, known, unknown, known, known, unknown, known, known, known, unknown]
    assert decode(FLAT, payloads).decoded.unknown == {"x": 3}


def test_a_deep_record_is_no_danger_and_no_other_than_it_is_alone() -> None:
    deep = b'{"id":1,"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    open_ = b'{"id":1,"x":' + b"[" * 200_000
    assert decode(FLAT, [deep]).fates == [row(1)]
    keyless = deep.replace(b'"id"', b'"no"')
    fates = decode(FLAT, [deep, b"{", open_, b'{"id":2}', keyless]).fates
    assert fates == [row(1), "unparsable", "unparsable", row(2), "missing-field"]


def test_a_batch_of_several_blocks_is_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BLOCK_RECORDS", 3)
    payloads = [b'{"id":%d}' % n if n % 4 else b"{" for n in range(20)]
    outcome = decode(FLAT, payloads)
    assert outcome.fates == [row(n) if n % 4 else "unparsable" for n in range(20)]
    assert set(outcome.decoded.details) == {0, 4, 8, 12, 16}


def test_no_records_are_no_rows() -> None:
    assert decode(FLAT, []).fates == []


def test_a_slice_of_records_is_decoded_as_it_stands() -> None:
    from lakebed.config.decoders import ColumnsOf, DecoderSettings
    from lakebed.decoding.engines import decoder_of

    records = records_of([b"{", b'{"id":1}', b'{"id":"2"}', b"{"]).slice(1, 2)
    decoded = decoder_of(DecoderSettings(format="json"), ColumnsOf(), FLAT).decode(records)
    assert decoded.rows.column("id").to_pylist() == [1, 2]


def test_a_record_that_is_too_large_is_not_read() -> None:
    decoder = {"format": "json", "record_bytes_max": 20}
    outcome = decode(FLAT, [b'{"id":1}', b'{"id":2,"name":"aaaaaaaaaa"}'], decoder=decoder)
    assert outcome.fates == [row(1), "too-large"]


def test_a_key_that_no_table_takes_is_a_verdict() -> None:
    schema = schema_of(row_keys={"a": "string", "b": "int32"}, sort_keys={"c": "string"})
    payloads = [
        json.dumps({"a": "x" * size, "b": 1, "c": "\x00" * zeros}).encode()
        for size, zeros in [(1016, 0), (1017, 0), (1014, 1), (1015, 1), (1, 600)]
    ]
    fates = decode(schema, payloads).fates
    assert [isinstance(fate, dict) for fate in fates] == [True, False, True, False, False]
    assert fates[1] == "key-too-long"


def test_unknown_fields_are_counted_by_name_or_refused() -> None:
    payloads = [b'{"id":1,"a":1,"b":{"c":1}}', b'{"id":2}', b'{"id":3,"a":null}', b'{"a":1']
    outcome = decode(FLAT, payloads)
    assert outcome.fates == [row(1), row(2), row(3), "unparsable"]
    assert outcome.decoded.unknown == {"a": 2, "b": 1}
    for policy in ("quarantine", "freeze", "discard_record"):
        refused = decode(FLAT, payloads, connection={"unknown": policy})
        assert refused.fates == ["unknown-field", row(2), "unknown-field", "unparsable"]
        assert refused.decoded.unknown == {"a": 2, "b": 1}


def test_records_cannot_fill_memory_with_names_of_unknown_fields() -> None:
    many = b",".join(b'"n%d":1' % n for n in range(500))
    payloads = [b'{"id":1,' + many + b"}", b'{"id":2,"' + b"x" * 10_000 + b'":1}']
    for policy in ("discard_field", "quarantine"):
        unknown = decode(FLAT, payloads, connection={"unknown": policy}).decoded.unknown
        assert len(unknown) == 100
        assert max(map(len, unknown)) <= 100


@pytest.mark.parametrize(
    ("nulls", "wanted"),
    [("write", "null-in-required"), ("ignore", "ignored"), ("fail", "null-in-required")],
)
def test_a_record_without_a_value_is_what_the_connection_says(nulls: str, wanted: str) -> None:
    connection = {"nulls": nulls}
    fates = decode(FLAT, [None, b'{"id":1}', b""], connection=connection).fates
    assert fates == [wanted, row(1), wanted]


def test_a_tombstone_with_its_key_is_a_row_of_nulls() -> None:
    schema = schema_of(row_keys={"_key": "string"}, values={"name": "string?"})
    connection = {"meta": ["key"]}
    payloads = [None, b'{"name":"a"}', b'{"name":"b"}', b"{}"]
    keys = [b"k1", b"k2", None, b"\xff"]
    fates = decode(schema, payloads, connection=connection, key=keys).fates
    wanted = [{"_key": "k1", "name": None}, {"_key": "k2", "name": "a"}]
    assert fates == [*wanted, "null-in-required", "not-utf8"]


def test_values_of_all_types_come_as_json_has_them() -> None:
    struct = {"struct": [{"name": "a", "type": "int32"}, {"name": "b", "type": {"list": "bool"}}]}
    schema = schema_of(
        row_keys={"id": "date32"},
        values={
            "t": "timestamp[us]?",
            "b": "binary?",
            "c": "time64[us]?",
            "l": {"list": "int64"},
            "s": struct,
            "m": {"map": ["string", "float32"]},
        },
    )
    good = {
        "id": "2024-02-29",
        "t": "2024-01-01T00:00:01.5",
        "b": "aGk=",
        "c": "01:02:03",
        "l": [1, None, 3],
        "s": {"a": 5, "b": [True, None]},
        "m": {"x": 1.5, "y": None},
    }
    bad = {"id": "2024-02-30", "t": "soon", "b": "?", "l": [1.5], "s": [], "m": 5}
    payloads = [json.dumps(good | {name: value}).encode() for name, value in bad.items()]
    outcome = decode(schema, [json.dumps(good).encode(), *payloads])
    assert outcome.fates[1:] == ["type-mismatch"] * len(bad)
    first = outcome.fates[0]
    assert (first["b"], first["l"], first["s"]) == (
        b"hi",
        [1, None, 3],
        {"a": 5, "b": [True, None]},
    )
    assert (first["m"], str(first["t"])) == (
        [("x", 1.5), ("y", None)],
        "2024-01-01 00:00:01.500000",
    )


def test_details_never_show_a_value() -> None:
    secret = "hunter2"
    payloads = [
        b'{"id":"%b"}' % secret.encode(),
        b'{"id":1,"name":{"%b":1}}' % secret.encode(),
        b'{"id":1,%b' % secret.encode(),
        b'["%b"]' % secret.encode(),
        b'{"id":1,"amount":"%b"}' % secret.encode(),
    ]
    outcome = decode(FLAT, payloads)
    assert all(isinstance(fate, str) for fate in outcome.fates)
    assert not any(secret in text for text in outcome.decoded.details.values())
    assert all(len(text) <= 200 for text in outcome.decoded.details.values())


def test_rows_have_the_columns_of_the_table() -> None:
    from lakebed.sorted_files.format.arrow_schema import arrow_schema

    for payloads in ([], [b'{"id":1}'], [b'{"id":"1"}', b"{"]):
        rows = decode(FLAT, payloads).decoded.rows
        assert rows.schema.equals(arrow_schema(FLAT), check_metadata=True)
        assert isinstance(rows, pa.RecordBatch)
