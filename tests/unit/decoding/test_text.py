"""Lines of delimited text, and raw records."""

import csv
import datetime
import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.errors import InvalidError
from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode

SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={"name": "string?", "size": "float64?", "at": "timestamp[us, UTC]?", "ok": "bool?"},
)
FIELDS = ["id", "name", "size", "at", "ok"]
TEXT: dict[str, Any] = {"format": "text", "fields": FIELDS}
NOTHING = {"name": None, "size": None, "at": None, "ok": None}


def test_a_line_is_a_row() -> None:
    payloads = [
        b"1,a,1.5,2024-01-01T00:00:00Z,true",
        b'2,"a, ""b""",-1e3,,false\n',
        b"3,,,,\r\n",
        b"-4,\xc3\xa9,0.1,,",
    ]
    at = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert decode(SCHEMA, payloads, decoder=TEXT).fates == [
        {"id": 1, "name": "a", "size": 1.5, "at": at, "ok": True},
        {**NOTHING, "id": 2, "name": 'a, "b"', "size": -1000.0, "ok": False},
        {**NOTHING, "id": 3},
        {**NOTHING, "id": -4, "name": "é", "size": 0.1},
    ]


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"1,a", "unparsable"),
        (b"0xf,a,,,", "type-mismatch"),
        (b"+1,a,,,", "type-mismatch"),
        (b"1,a,,,,", "unparsable"),
        (b'1,"a,,,', "unparsable"),
        (b'1,"a,"",,,', "unparsable"),
        (b"1,a,,,\n2,b,,,", "not-one-object"),
        (b'1,"a\nb",,,', "not-one-object"),
        (b"1,a\rb,,,", "not-one-object"),
        (b"1,\xff,,,", "not-utf8"),
        (b"1,\x00,,,", "unparsable"),
        (b",a,,,", "null-in-required"),
        (b"x,a,,,", "type-mismatch"),
        (b"1.5,a,,,", "type-mismatch"),
        (b"9223372036854775808,a,,,", "out-of-range"),
        (b"1,a,much,,", "type-mismatch"),
        (b"1,a,,yesterday,", "time-unreadable"),
        (b"1,a,,,maybe", "type-mismatch"),
    ],
)
def test_a_bad_line_gets_its_verdict_and_its_neighbours_stay(payload: bytes, code: str) -> None:
    assert decode(SCHEMA, [payload], decoder=TEXT).fates == [code]
    fates = decode(SCHEMA, [b"7,a,,,", payload, b'8,"b",,,', payload], decoder=TEXT).fates
    wanted = [{**NOTHING, "id": 7, "name": "a"}, code, {**NOTHING, "id": 8, "name": "b"}, code]
    assert fates == wanted


def test_delimiter_quote_null_and_columns_can_be_others() -> None:
    schema = schema_of(row_keys={"key": "string"}, values={"n": "int32?"})
    decoder = {
        "format": "text",
        "fields": ["a", "b", "c"],
        "delimiter": "\t",
        "quote": "",
        "null": "\\N",
        "time": {"path": "c", "as": "ms"},
    }
    connection = {"columns": {"key": "b", "n": "a"}}
    payloads = [b'1\t"x\t1704067200000', b"\\N\ty\t1704067200001.5", b"2\tz\tsoon"]
    outcome = decode(schema, payloads, decoder=decoder, connection=connection)
    wanted = [{"key": '"x', "n": 1}, {"key": "y", "n": None}, "time-unreadable"]
    assert outcome.fates == wanted
    first = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    micros = datetime.timedelta(microseconds=1_500)
    assert outcome.decoded.time.to_pylist() == [first, first + micros]


def test_a_decimal_is_exact_or_out_of_range() -> None:
    schema = schema_of(row_keys={"id": "int32"}, values={"d": "decimal128(38,9)"})
    decoder = {"format": "text", "fields": ["id", "d"]}
    texts = [
        "20062827603801437255781353093375376324",
        "20062827603801437255781353093.5",
        "1.0000000001",
        "-.5",
        "1e5",
    ]
    payloads = [f"{n},{text}".encode() for n, text in enumerate(texts)]
    fates = decode(schema, payloads, decoder=decoder).fates
    assert [fate if isinstance(fate, str) else str(fate["d"]) for fate in fates] == [
        "out-of-range",
        "20062827603801437255781353093.500000000",
        "out-of-range",
        "-0.500000000",
        "out-of-range",
    ]


@pytest.mark.parametrize(
    ("decoder", "said"),
    [
        ({"fields": []}, "fields"),
        ({"fields": ["id", "id"]}, "fields"),
        ({"fields": ["idd", *FIELDS[1:]]}, "did you mean 'idd'"),
        ({"delimiter": '"'}, "delimiter"),
        ({"delimiter": "é"}, "delimiter"),
        ({"delimiter": ",,"}, "delimiter"),
    ],
)
def test_what_can_never_be_read_is_refused(decoder: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        decode(SCHEMA, [], decoder=TEXT | decoder)


letters = st.text(alphabet='ab,"é \t', max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(letters, min_size=1, max_size=4), min_size=1, max_size=6), st.booleans())
def test_lines_are_split_as_pythons_csv_splits_them(
    lines: list[list[str]],
    is_written: bool,
) -> None:
    schema = schema_of(row_keys={"a": "string"}, values={"b": "string", "c": "string"})
    decoder = {"format": "text", "fields": ["a", "b", "c"], "null": "nothing"}
    payloads = []
    for fields in lines:
        if is_written:
            file = io.StringIO()
            csv.writer(file, lineterminator="").writerow(fields)
            payloads.append(file.getvalue().encode())
        else:
            payloads.append(",".join(fields).encode())
    fates = decode(schema, payloads, decoder=decoder).fates
    for payload, fate in zip(payloads, fates, strict=True):
        if not payload:
            assert fate == "null-in-required"
            continue
        (wanted,) = csv.reader([payload.decode()])
        if len(wanted) != 3 or not closes(payload):
            assert fate == "unparsable"
        else:
            assert fate == dict(zip("abc", wanted, strict=True))
    alone = [decode(schema, [payload], decoder=decoder).fates[0] for payload in payloads]
    assert alone == fates


def closes(payload: bytes) -> bool:
    """Whether each quote that opens a field is closed: `csv` does not say it."""
    state = "start"
    for letter in payload.decode():
        match state, letter:
            case "start", '"':
                state = "quoted"
            case "quoted", '"':
                state = "closed"
            case "closed", '"':
                state = "quoted"
            case "quoted", _:
                pass
            case _, ",":
                state = "start"
            case _:
                state = "field"
    return state != "quoted"


def test_raw_records_are_taken_whole() -> None:
    schema = schema_of(
        row_keys={"_split": "string", "_position": "int64"},
        values={"_version": "int64", "body": "binary?", "note": "string?"},
    )
    connection = {"rest": "body", "lineage": True}
    payloads = [b"\xff\x00", None, b"{"]
    fates = decode(schema, payloads, decoder={"format": "raw"}, connection=connection).fates
    assert [fate["body"] for fate in fates] == payloads
    assert [fate["_position"] for fate in fates] == [0, 1, 2]


def test_raw_records_as_text_are_utf8() -> None:
    schema = schema_of(row_keys={"body": "string"})
    fates = decode(
        schema, [b"a", b"\xff", b""], decoder={"format": "raw"}, connection={"rest": "body"}
    ).fates
    assert fates == [{"body": "a"}, "not-utf8", {"body": ""}]


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({}, "rest"),
        ({"rest": "body", "columns": {"id": "id"}}, "no fields"),
        ({"rest": "body"}, "columns.id"),
    ],
)
def test_raw_records_have_no_fields(connection: dict[str, Any], said: str) -> None:
    schema = schema_of(row_keys={"id": "int64"}, values={"body": "binary"})
    with pytest.raises(InvalidError, match=said):
        decode(schema, [], decoder={"format": "raw"}, connection=connection)
