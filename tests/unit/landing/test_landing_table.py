"""Lines become rows by source split and position, byte by byte as they came."""

import random

import pyarrow as pa
import pytest

from lakebed.decoding.raw_records import HEADERS, lines_as_records, raw_records
from lakebed.landing.landing_table import landed_rows


@pytest.mark.parametrize("seed", range(20))
def test_any_bytes_come_back_with_the_position_of_their_first_byte(seed: int) -> None:
    rng = random.Random(seed)
    lines = [rng.randbytes(rng.randrange(9)).replace(b"\n", b"\r") for _ in range(40)]
    text, begin = b"".join(line + b"\n" for line in lines), rng.randrange(1 << 40)
    rows = landed_rows("file", lines_as_records(text, begin))
    assert rows["value"].to_pylist() == lines
    assert set(rows["source_split"].to_pylist()) == {"file"}
    for line, position in zip(lines, rows["position"].to_pylist(), strict=True):
        assert text[position - begin :][: len(line) + 1] == line + b"\n"
    rows.validate(full=True)
    assert rows.schema.names == ["source_split", "position", "value", "key", "headers", "time"]


def test_keys_headers_and_times_land_as_they_came() -> None:
    headers = [[("a", b"1"), ("a", b""), ("b", None)], [], None]
    time = [1, None, 1_700_000_000_000_000]
    records = raw_records(
        value=pa.array([None, b"", b"\xff"], pa.binary()),
        position=pa.array([7, 9, 10]),
        key=pa.array([b"k", None, b""], pa.binary()),
        headers=pa.array(headers, HEADERS),
        time=pa.array(time, pa.timestamp("us", tz="UTC")),
    )
    rows = landed_rows("orders/0", records)
    rows.validate(full=True)
    assert rows["headers"].to_pylist() == headers
    assert rows["key"].to_pylist() == [b"k", None, b""]
    assert rows["value"].to_pylist() == [None, b"", b"\xff"]
    assert rows["time"].cast(pa.int64()).to_pylist() == time
