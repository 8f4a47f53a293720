"""Which parts of a predicate became no range, as an explanation names them."""

import datetime
from pathlib import Path

import lakebed
from tests.unit.sql.test_sql import SCHEMA, rows_of


def test_an_explanation_names_each_part_that_became_no_range(tmp_path: Path) -> None:
    lake = lakebed.connect(tmp_path / "lake")
    lake.create_table("trips", SCHEMA).ingest(rows_of(3_000))
    text = (
        "select city, count(*) from trips where id >= 'k01' and id in ('k01000', 'k01001') "
        "and small = ? and city is not null and day in (?, date '2026-01-05') and raw < ?::blob "
        "and (id = 'k01001' or small = 9) and city like '%l%' and fare > 3.5 and small % 2 = 0 "
        "group by city having count(*) > 1"
    )
    given = [4, datetime.date(2026, 1, 6), b"x\xff"]
    found = lake.explain_sql(text, given)
    (scan,) = found.scans
    assert scan.hint == "", "something narrows"
    assert set(scan.without_range) == {
        "(small = 4)",
        "is_valid(city)",
        "day in (2026-01-06, 2026-01-05)",
        "(raw < b'x\\xff')",
        "((id = 'k01001') or (small = 9))",
    }
    tests = " ".join(found.not_pushed)
    assert all(part in tests for part in ("contains(city, 'l')", "fare > 3.5", "% 2"))
    assert "count" not in tests, "what is tested of groups is of no scan"
    lines = str(found).splitlines()
    assert "no range    (small = 4)" in lines
    assert f"not pushed  {found.not_pushed[0]}" in lines
    narrow = lake.explain_sql("select * from trips where id >= 'k01'")
    assert (narrow.scans[0].without_range, narrow.not_pushed) == ((), ())
    assert "no range" not in str(narrow)
    assert "not pushed" not in str(narrow)
    lake.close()
