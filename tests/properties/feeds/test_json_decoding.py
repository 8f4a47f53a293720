"""JSON decoded by columns is what Python's own parser reads, record by record, verdicts too."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode
from tests.dsl.json_reference import ALLOWED, SCHEMA, BadError, wanted

NAMES = ["id", "name", "size", "flag", "small", "other", "\x01", ""]


def compare(payloads: list[bytes]) -> None:
    fates = decode(SCHEMA, payloads, connection={"nulls": "write"}).fates
    for payload, fate in zip(payloads, fates, strict=True):
        if not payload:
            assert fate == "null-in-required"
            continue
        try:
            row = wanted(payload)
        except BadError as bad:
            (kind,) = bad.args
            assert isinstance(fate, str), (payload, kind, fate)
            assert fate in ALLOWED[kind] or kind == "unreadable", (payload, kind, fate)
        else:
            assert repr(fate) == repr(row), (payload, fate, row)  # repr: floats to the last bit


numbers = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.integers(-200, 200).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "Inf", "-0", "-0.0", "1.", ".5", "+1", "1e5"]),
)
texts = st.one_of(st.text(max_size=8), st.sampled_from(["5", "-7.0", "1e2", "", "NaN", "\x00"]))
scalars = st.one_of(numbers, texts.map(json.dumps), st.sampled_from(["null", "true", "false"]))
spaces = st.sampled_from(["", "", "", " ", "\n", "\r\n\t"])
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda v: f"[{','.join(v)}]"),
        st.lists(st.tuples(texts, inner), max_size=3).map(
            lambda v: "{" + ",".join(f"{json.dumps(name)}:{x}" for name, x in v) + "}"
        ),
    ),
    max_leaves=5,
)


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    pairs = draw(
        st.lists(st.tuples(st.sampled_from(NAMES), st.one_of(scalars, values)), max_size=5)
    )
    if draw(st.booleans()):
        pairs.append(("id", str(draw(st.integers(0, 9)))))
    space = draw(spaces)
    body = f"{space},".join(
        f"{space}{json.dumps(name)}{space}:{value}{space}" for name, value in pairs
    )
    return f"{space}{{{body}}}{space}".encode("utf-8", "surrogatepass")


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    payload = draw(objects())
    kind = draw(st.integers(0, 9))
    if kind > 5 and payload:
        at = draw(st.integers(0, len(payload) - 1))
        piece = draw(
            st.one_of(
                st.binary(max_size=2),
                st.sampled_from(
                    [b"{", b"}", b'"', b"\n", b"\x00", b"null", b",", b"{}", b"\\", b"]"]
                ),
            )
        )
        payload = payload[:at] + piece + payload[at + draw(st.integers(0, 2)) :]
    elif kind == 5:
        payload += draw(objects())
    elif kind == 4:
        payload = draw(st.binary(max_size=12))
    return payload


def settings_of(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


@settings_of(60)
@given(st.lists(payloads(), min_size=1, max_size=12))
def test_rows_and_verdicts_are_those_of_pythons_parser(batch: list[bytes]) -> None:
    compare(batch)


@settings_of(30)
@given(st.lists(payloads(), min_size=1, max_size=8))
def test_a_record_is_the_same_in_all_company(batch: list[bytes]) -> None:
    together = decode(SCHEMA, batch).fates
    alone = [decode(SCHEMA, [payload]).fates[0] for payload in batch]
    assert repr(together) == repr(alone)


@pytest.mark.slow
@settings_of(2_000)
@given(st.lists(payloads(), min_size=1, max_size=12))
def test_many_rows_and_verdicts_are_those_of_pythons_parser(batch: list[bytes]) -> None:
    compare(batch)


NESTED = schema_of(
    row_keys={"id": "int64"},
    values={
        "amount": "decimal128(6,2)?",
        "day": "date32?",
        "raw": "binary?",
        "clock": "time64[us]?",
        "local": "timestamp[us]?",
        "small": "float32?",
        "items": {
            "list": {"struct": [{"name": "a", "type": "int16"}, {"name": "b", "type": "bool"}]}
        },
    },
)
NESTED_CONNECTION = {
    "columns": {
        "id": "id",
        "amount": "other.amount",
        "day": "day",
        "raw": "raw",
        "clock": "clock",
        "local": "other.local",
        "small": "small",
        "items": "items",
    }
}
NESTED_DECODER = {"format": "json", "time": {"path": "other.at", "as": "auto"}}
nested_values = {
    "id": st.integers(0, 9).map(str),
    "day": st.sampled_from(['"2024-02-29"', '"2023-02-29"', '"x"', "null", "5"]),
    "raw": st.sampled_from(['"aGk="', '"aGk"', '""', "null", "[]"]),
    "clock": st.sampled_from(['"01:02:03"', '"25:00"', '"01:02"', "null"]),
    "small": numbers,
    "items": st.sampled_from(
        ['[{"a":1,"b":true},null]', '[{"a":1.0}]', "[{}]", "[5]", "null", '[{"a":1,"a":1}]', "{}"]
    ),
    "other": st.fixed_dictionaries(
        {},
        optional={
            "amount": st.one_of(numbers, numbers.map(lambda text: f'"{text}"')),
            "local": st.sampled_from(['"2024-01-01T00:00:00"', '"2024-01-01T00:00:00Z"', "1"]),
            "at": st.sampled_from(["1709211909", '"1709211909.5"', "1", "null", '"x"', "[]"]),
        },
    ).map(lambda v: "{" + ",".join(f'"{name}":{x}' for name, x in v.items()) + "}"),
}


@st.composite
def nested_payloads(draw: st.DrawFn) -> bytes:
    fields = draw(st.fixed_dictionaries({}, optional=nested_values))
    payload = ("{" + ",".join(f'"{name}":{x}' for name, x in fields.items()) + "}").encode()
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(payload) - 1))
        payload = payload[:at] + draw(st.binary(max_size=2)) + payload[at + 1 :]
    return payload


@settings_of(40)
@given(st.lists(nested_payloads(), min_size=1, max_size=8))
def test_a_nested_record_is_the_same_in_all_company(batch: list[bytes]) -> None:
    def fates(payloads: list[bytes]) -> list[Any]:
        return decode(NESTED, payloads, decoder=NESTED_DECODER, connection=NESTED_CONNECTION).fates

    assert repr(fates(batch)) == repr([fates([payload])[0] for payload in batch])
