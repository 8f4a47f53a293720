"""The door to decoders."""

import sys

import pytest

from lakebed.errors import InvalidError
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode

SCHEMA = schema_of(row_keys={"id": "int64"})


@pytest.mark.parametrize(
    ("format_", "module", "library"),
    [("avro", "avro_values", "fastavro"), ("protobuf", "protobuf_values", "google.protobuf")],
)
def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, format_: str, module: str, library: str
) -> None:
    monkeypatch.delitem(sys.modules, f"lakebed.decoding.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidError, match=library) as caught:
        decode(SCHEMA, [], decoder={"format": format_})
    assert "lakebed[feeds]" in str(caught.value)


def test_codes_keep_their_numbers() -> None:
    codes = (
        "row unparsable not-one-object duplicate-field unknown-field missing-field "
        "null-in-required type-mismatch out-of-range not-utf8 key-too-long time-unreadable "
        "time-out-of-bounds too-large schema-unknown transform-failed transform-timeout late "
        "ignored no-route refused-by-table"
    )
    assert [verdict.code for verdict in Verdict] == codes.split()
    assert [verdict.value for verdict in Verdict] == list(range(len(Verdict)))
