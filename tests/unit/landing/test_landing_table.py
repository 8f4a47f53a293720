"""Lines become rows by source split and position, byte by byte as they came."""

import random

import pyarrow as pa
import pytest

from lakebed.landing.landing_table import landed_rows
from lakebed.ports.record_source import RecordLines


@pytest.mark.parametrize("seed", range(20))
def test_any_bytes_come_back_with_the_position_of_their_first_byte(seed: int) -> None:
    rng = random.Random(seed)
    lines = [rng.randbytes(rng.randrange(9)).replace(b"\n", b"\r") for _ in range(40)]
    text, begin = b"".join(line + b"\n" for line in lines), rng.randrange(1 << 40)
    rows = landed_rows("file", RecordLines(begin, begin + len(text), text))
    assert rows["value"].to_pylist() == lines
    assert set(rows["source_split"].to_pylist()) == {"file"}
    for line, position in zip(lines, rows["position"].to_pylist(), strict=True):
        assert text[position - begin :][: len(line) + 1] == line + b"\n"
    rows.validate(full=True)
    assert rows.schema.types == [pa.string(), pa.int64(), pa.binary()]
