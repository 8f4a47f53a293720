"""What a text is refused with that is no SELECT."""

import duckdb
import pytest

from lakebed.errors import InvalidError
from lakebed.sql.statement import parsed


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("pivot trips on city using count(*)", "FILTER"),
        (" PIVOT (select city from trips) on city", "FILTER"),
        ("select * from (pivot trips on city using count(*))", "FILTER"),
        ("with t as (from trips) pivot t on city using count(*)", "FILTER"),
        ("select * from trips pivot (count(*) for city in ('ulm'))", "FILTER"),
        ("insert into trips values ('a pivot')", "write one SELECT"),
    ],
)
def test_who_pivots_is_told_what_to_write(text: str, hint: str) -> None:
    with (
        duckdb.connect() as connection,
        pytest.raises(InvalidError, match="only SELECT can be run") as caught,
    ):
        parsed(connection, text)
    assert hint in str(caught.value.hint)
