"""Times of events: fifty ways to write one, and none that is made up."""

import datetime
import json

import pytest

from lakebed.errors import InvalidError
from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode

SCHEMA = schema_of(row_keys={"id": "int64"})
WANTED = datetime.datetime(2024, 2, 29, 13, 5, 9, tzinfo=datetime.UTC)
SECOND = 1_709_211_909
US = datetime.timedelta(microseconds=1)
MILLIS, MICROS = 123_000 * US, 123_456 * US
ZERO = 0 * US

FORMATS = [
    ("s", SECOND, ZERO),
    ("s", str(SECOND), ZERO),
    ("s", SECOND + 0.5, 500_000 * US),
    ("s", f"{SECOND}.123456", MICROS),
    ("ms", SECOND * 1000 + 123, MILLIS),
    ("ms", f"{SECOND * 1000 + 123}", MILLIS),
    ("ms", f"{SECOND * 1000 + 123}.456", MICROS),
    ("us", SECOND * 1_000_000 + 123_456, MICROS),
    ("us", str(SECOND * 1_000_000 + 123_456), MICROS),
    ("ns", SECOND * 1_000_000_000 + 123_456_789, MICROS),
    ("ns", str(SECOND * 1_000_000_000 + 123_456_789), MICROS),
    ("auto", SECOND, ZERO),
    ("auto", SECOND * 1000 + 123, MILLIS),
    ("auto", SECOND * 1_000_000 + 123_456, MICROS),
    ("auto", SECOND * 1_000_000_000 + 123_456_789, MICROS),
    ("auto", f"{SECOND}.123456", MICROS),
    ("iso", "2024-02-29T13:05:09Z", ZERO),
    ("iso", "2024-02-29T13:05:09z", ZERO),
    ("iso", "2024-02-29t13:05:09.123Z", MILLIS),
    ("iso", "2024-02-29T13:05:09,123456Z", MICROS),
    ("iso", "2024-02-29T13:05:09.123456789Z", MICROS),
    ("iso", "2024-02-29T15:05:09+02:00", ZERO),
    ("iso", "2024-02-29T15:05:09.123+0200", MILLIS),
    ("iso", "2024-02-29T15:05:09+02", ZERO),
    ("iso", "2024-02-29T07:35:09-05:30", ZERO),
    ("iso", "2024-02-29 13:05:09 +00:00", ZERO),
    ("iso", "20240229T130509Z", ZERO),
    ("iso", "20240229T130509.123Z", MILLIS),
    ("iso", "2024-060T13:05:09Z", ZERO),
    ("iso", "2024-03-01T01:05:09+12:00", ZERO),
    ("%Y-%m-%d %H:%M:%S", "2024-02-29 13:05:09", ZERO),
    ("%Y-%m-%d %H:%M:%S.%f", "2024-02-29 13:05:09.123", MILLIS),
    ("%Y-%m-%d %H:%M:%S,%f", "2024-02-29 13:05:09,123456", MICROS),
    ("%Y/%m/%d %H:%M:%S %z", "2024/02/29 14:05:09 +0100", ZERO),
    ("%d/%b/%Y:%H:%M:%S %z", "29/Feb/2024:13:05:09 +0000", ZERO),
    ("%d/%m/%Y %H:%M:%S", "29/02/2024 13:05:09", ZERO),
    ("%m/%d/%Y %I:%M:%S %p", "02/29/2024 01:05:09 PM", ZERO),
    ("%m/%d/%y %H:%M:%S", "02/29/24 13:05:09", ZERO),
    ("%a, %d %b %Y %H:%M:%S %Z", "Thu, 29 Feb 2024 13:05:09 GMT", ZERO),
    ("%a, %d %b %Y %H:%M:%S %z", "Thu, 29 Feb 2024 08:05:09 -0500", ZERO),
    ("%a %b %d %H:%M:%S %Y", "Thu Feb 29 13:05:09 2024", ZERO),
    ("%A, %d-%b-%y %H:%M:%S %Z", "Thursday, 29-Feb-24 13:05:09 UTC", ZERO),
    ("%B %d, %Y %I:%M:%S %p", "February 29, 2024 1:05:09 pm", ZERO),
    ("%Y%m%d%H%M%S", "20240229130509", ZERO),
    ("%Y%m%d-%H:%M:%S.%f", "20240229-13:05:09.123", MILLIS),
    ("%Y.%m.%d %H:%M:%S", "2024.02.29 13:05:09", ZERO),
    ("%d.%m.%Y %H:%M:%S", "29.02.2024 13:05:09", ZERO),
    ("%Y-%jT%H:%M:%S%z", "2024-060T13:05:09Z", ZERO),
    ("%FT%T%z", "2024-02-29T14:05:09+01:00", ZERO),
    ("[%d/%b/%Y %H:%M:%S.%f%z] 100%%", "[29/Feb/2024 13:05:09.123+00] 100%", MILLIS),
    ("%b %d %Y %H:%M:%S", "feb 29 2024 13:05:09", ZERO),
    ("%S:%M:%H %d %m %Y", "09:05:13 29 02 2024", ZERO),
]


def time_of(value: object, way: str, zone: str = "UTC") -> object:
    decoder = {"format": "json", "time": {"path": "at", "as": way, "zone": zone}}
    outcome = decode(SCHEMA, [json.dumps({"id": 1, "at": value}).encode()], decoder=decoder)
    (fate,) = outcome.fates
    return outcome.decoded.time[0].as_py() if isinstance(fate, dict) else fate


@pytest.mark.parametrize(("way", "value", "beyond"), FORMATS)
def test_a_time_is_read_to_the_exact_instant(
    way: str, value: object, beyond: datetime.timedelta
) -> None:
    assert time_of(value, way) == WANTED + beyond


def test_the_formats_are_at_least_fifty() -> None:
    assert len({(way, repr(value)) for way, value, _ in FORMATS}) >= 50


def test_a_text_without_an_offset_is_in_the_zone_that_was_said_or_no_time() -> None:
    text = "2024-02-29T14:05:09"
    assert time_of(text, "iso", "Europe/Berlin") == WANTED
    assert time_of(text, "iso", "+01:00") == WANTED
    assert time_of(text, "iso", "") == "time-unreadable"
    assert time_of(f"{text}+01:00", "iso", "America/Lima") == WANTED
    skipped, doubled = "2024-03-31T02:30:00", "2024-10-27T02:30:00"
    for changing in (skipped, doubled):
        assert time_of(changing, "iso", "Europe/Berlin") == "time-unreadable"


@pytest.mark.parametrize(
    ("way", "value"),
    [
        ("ms", None),
        ("iso", ""),
        ("iso", "yesterday"),
        ("iso", 5),
        ("ms", True),
        ("ms", "5 o'clock"),
        ("iso", "2024-02-30T00:00:00Z"),
        ("iso", "2023-02-29T00:00:00Z"),
        ("iso", "2024-13-01T00:00:00Z"),
        ("iso", "2024-01-01T24:00:00Z"),
        ("iso", "2024-01-01T00:60:00Z"),
        ("iso", "2024-01-01T00:00:61Z"),
        ("iso", "2024-01-01T00:00:00+25:00"),
        ("iso", "0000-01-01T00:00:00Z"),
        ("iso", "2024-366T00:00:00Z x"),
        ("iso", "2023-366T00:00:00Z"),
        ("%Y-%m-%d", "2024-02-29 "),
        ("%d %b %Y", "29 Foo 2024"),
        ("%I %p %F", "13 PM 2024-01-01"),
    ],
)
def test_what_cannot_be_read_is_a_verdict_and_never_1970(way: str, value: object) -> None:
    assert time_of(value, way) == "time-unreadable"


def test_a_missing_time_is_a_verdict() -> None:
    decoder = {"format": "json", "time": {"path": "a.b.c", "as": "ms"}}
    good = b'{"id":1,"a":{"b":{"c":1709211909000}}}'
    payloads = [
        good,
        b'{"id":1,"a":{"b":{}}}',
        b'{"id":1,"a":null}',
        b'{"id":1}',
        b'{"id":1,"a":1}',
    ]
    outcome = decode(SCHEMA, payloads, decoder=decoder)
    assert outcome.fates == [{"id": 1}, *["time-unreadable"] * 3, "type-mismatch"]
    assert outcome.decoded.time.to_pylist() == [WANTED]
    assert outcome.detail(1) == "a.b.c"


@pytest.mark.parametrize(
    ("way", "value"),
    [
        ("s", 10**15),
        ("s", 10**30),
        ("s", "1" + 50 * "0"),
        ("s", -(10**12)),
        ("ms", 2**62),
        ("auto", 0),
        ("auto", 12),
        ("auto", 946_684_799),
        ("auto", 4_102_444_800),
        ("auto", -SECOND),
        ("iso", "9999-12-31T23:59:59-01:00"),
        ("iso", "0001-01-01T00:00:00+01:00"),
    ],
)
def test_what_is_no_likely_time_is_out_of_bounds(way: str, value: object) -> None:
    assert time_of(value, way) == "time-out-of-bounds"


def test_a_number_before_1970_is_cut_towards_the_past() -> None:
    assert time_of(-1, "ns") == datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, datetime.UTC)
    assert time_of("-0.5", "s") == datetime.datetime(
        1969, 12, 31, 23, 59, 59, 500_000, datetime.UTC
    )


def test_numbers_and_texts_of_numbers_mix() -> None:
    decoder = {"format": "json", "time": {"path": "at", "as": "auto"}}
    values = [SECOND, f"{SECOND * 1000}", SECOND * 1_000_000, float(SECOND), "soon", [1]]
    payloads = [json.dumps({"id": 1, "at": value}).encode() for value in values]
    outcome = decode(SCHEMA, payloads, decoder=decoder)
    assert outcome.fates == [{"id": 1}] * 4 + ["time-unreadable"] * 2
    assert outcome.decoded.time.to_pylist() == [WANTED] * 4


def test_a_record_has_its_own_time() -> None:
    for time in ("record", {}):
        decoder = {"format": "json", "time": time}
        outcome = decode(SCHEMA, [b'{"id":1}', b'{"id":2}'], decoder=decoder, time=[WANTED, None])
        assert outcome.fates == [{"id": 1}, "time-unreadable"]
        assert outcome.decoded.time.to_pylist() == [WANTED]


def test_without_a_time_records_have_none() -> None:
    outcome = decode(SCHEMA, [b'{"id":1}'], time=[WANTED])
    assert outcome.decoded.time.to_pylist() == [None]


def test_columns_take_times_as_they_are_written() -> None:
    schema = schema_of(
        row_keys={"at": "timestamp[us, UTC]"},
        values={"seen": "timestamp[us, UTC]?", "raw": "int64?", "day": "timestamp[us, UTC]?"},
    )
    decoder = {"format": "json", "time": {"path": "meta.ts", "as": "ms"}}
    connection = {
        "columns": {
            "at": "meta.ts",
            "raw": "meta.ts",
            "seen": {"path": "seen", "as": "s"},
            "day": {"path": "day", "as": "%d.%m.%Y", "zone": "UTC"},
        }
    }
    payloads = [
        b'{"meta":{"ts":1709211909000},"seen":1709211909,"day":"29.02.2024"}',
        b'{"meta":{"ts":"1709211909000"},"seen":null}',
        b'{"meta":{"ts":1709211909000},"day":"29.2."}',
        b'{"meta":{"ts":1709211909000},"seen":1e20}',
    ]
    outcome = decode(schema, payloads, decoder=decoder, connection=connection)
    day = datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)
    rest = {"at": WANTED, "raw": SECOND * 1000}
    assert outcome.fates == [
        {**rest, "seen": WANTED, "day": day},
        {**rest, "seen": None, "day": None},
        "time-unreadable",
        "time-out-of-bounds",
    ]


@pytest.mark.parametrize(
    ("way", "problem"),
    [("mss", "did you mean 'ms'"), ("%Y %Q", "%Q"), ("", "as"), ("%", "letter")],
)
def test_an_unknown_way_to_write_times_is_refused(way: str, problem: str) -> None:
    with pytest.raises(InvalidError, match=r"decoder") as caught:
        time_of("x", way)
    assert problem in str(caught.value)
