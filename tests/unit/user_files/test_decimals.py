"""Decimals of CSV and JSON are exact or refused: Arrow's own readers overflow in silence."""

import decimal
import json
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError
from lakebed.user_files.decimals import decimals_from_text

LONG = "20062827603801437255781353093375376324"


@pytest.fixture
def table(tmp_path: Path) -> lakebed.Table:
    lake = lakebed.connect(tmp_path / "lake", create=True)
    schema = lakebed.schema_of(
        row_keys={"id": "int64"},
        values={"wide": "decimal128(38,9)?", "small": "decimal128(6,2)?"},
    )
    return lake.create_table("t", schema)


@pytest.mark.parametrize(
    ("field", "value"), [("wide", LONG), ("small", "100119"), ("small", "1e4"), ("wide", "1e60")]
)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_number_that_does_not_fit_is_refused(
    tmp_path: Path, table: lakebed.Table, kind: str, field: str, value: str
) -> None:
    file = tmp_path / f"rows.{kind}"
    line = f"id,{field}\n1,{value}" if kind == "csv" else json.dumps({"id": 1, field: value})
    file.write_text(f"{line}\n")
    with pytest.raises(InvalidError):
        table.ingest(file)
    assert table.query().read_all().num_rows == 0


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_numbers_that_fit_are_exact(tmp_path: Path, table: lakebed.Table, kind: str) -> None:
    file = tmp_path / f"rows.{kind}"
    values = ["9" * 29 + "." + "9" * 9, "-0.000000001", "1e3", "12.5", "0"]
    if kind == "csv":
        lines = ["id,wide", *(f"{number},{value}" for number, value in enumerate(values)), "9,"]
    else:
        lines = [json.dumps({"id": number, "wide": value}) for number, value in enumerate(values)]
        lines.append('{"id": 9}')
    file.write_text("".join(f"{line}\n" for line in lines))
    table.ingest(file)
    found = table.query().read_all()["wide"].to_pylist()
    assert found == [*map(Decimal, values), None]


@pytest.mark.parametrize("seed", range(30))
def test_any_text_is_the_decimal_that_python_reads_or_is_refused(seed: int) -> None:
    rng = random.Random(seed)
    with decimal.localcontext(decimal.Context(prec=200)):
        for _ in range(60):
            precision = rng.randrange(1, 39)
            wanted = pa.decimal128(precision, rng.randrange(precision + 1))
            digits = "".join(rng.choices("0123456789", k=rng.randrange(1, 38)))
            point = rng.randrange(len(digits) + 1)
            exponent = rng.choice(["", "", "", f"e{rng.randrange(-12, 40)}"])
            text = rng.choice("+- ").strip() + digits[:point] + "." + digits[point:] + exponent
            exact = Decimal(text)
            scaled = exact.scaleb(wanted.scale)
            fits = scaled == scaled.to_integral_value() and abs(scaled) < 10**precision
            try:
                (found,) = decimals_from_text(pa.array([text]), wanted).to_pylist()
            except pa.ArrowInvalid:
                assert not fits, (text, wanted)
            else:
                assert (found, fits) == (exact, True), (text, wanted)
