"""Strategies: tables whose groups age, and the plain model that tells what is right: by the
sentence of the page, from all rows that were taken in."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from lakebed import AgeOff, Processing, schema_of
from lakebed.model.names import Micros
from lakebed.model.processing import age_off_limit, checked_processing
from lakebed.model.schema import Schema
from tests.properties.processings import DAY, Row

SPAN_DAYS = 2
SEEN = ["date32", "timestamp[us, UTC]", "int64", "int32"]
NAMES = ("id", "part", "seen", "n", "rows", "name")


class Aging(NamedTuple):
    """A table to be. units: of a day in its field `seen`."""

    schema: Schema
    processing: Processing
    units: int

    def is_taken(self, row: Row, at: int) -> bool:
        """Whether an ingest takes a row in."""
        return bool(row[2] >= self.limit(at))

    def limit(self, at: int) -> int:
        assert self.processing.age_off is not None
        return age_off_limit(self.processing.age_off, self.schema, Micros(at))

    def expected(self, rows: Sequence[Row], at: int) -> list[Row]:
        """Return what a query gives, of rows that were taken in."""
        found = []
        for key in sorted({row[:2] for row in rows}):
            own = sorted((row for row in rows if row[:2] == key), key=lambda row: row[2])
            groups: list[list[Row]] = []
            for row in own:
                step = row[2] // (SPAN_DAYS * self.units)
                if not groups or step > groups[-1][-1][2] // (SPAN_DAYS * self.units) + 1:
                    groups.append([])
                groups[-1].append(row)
            living = [row for g in groups if g[-1][2] >= self.limit(at) for row in g]
            if living:
                newest = max(row[2] for row in living)
                name = max(
                    (r[5] for r in living if r[2] == newest), key=lambda n: (n is not None, n or "")
                )
                count = sum(row[3] for row in living)
                found.append((*key, newest, count, len(living), name))
        return found


@st.composite
def agings(draw: st.DrawFn) -> Aging:
    seen = draw(st.sampled_from(SEEN))
    keys: dict[str, dict[str, object]] = {"row_keys": {"id": "string", "part": "int32"}}
    if draw(st.booleans()):
        keys = {"row_keys": {"id": "string"}, "sort_keys": {"part": "int32"}}
    values = {"seen": seen, "n": "int64", "rows": "int64", "name": "string?"}
    schema = schema_of(**keys, values=values)  # type: ignore[arg-type]  # of types
    unit: Any = "s" if seen.startswith("int") else None
    units = {"date32": 1, "int64": DAY, "int32": DAY}.get(seen, DAY * 1_000_000)
    processing = Processing(
        age_off=AgeOff("seen", SPAN_DAYS * DAY, unit),
        aggregate={"seen": "max", "n": "sum", "rows": "count", "name": "last by seen"},
    )
    return Aging(schema, checked_processing(processing, schema), units)


def rows_of(made: Aging, day: int) -> st.SearchStrategy[list[Row]]:
    """Rows of a day: most are of that day or some before it, few of days to come."""
    ages = st.sampled_from([0, 0, 0, 1, 1, 2, 3, -2, -4, -9])
    units = made.units
    offsets = st.sampled_from([0, units // 2, units - 1])
    row = st.tuples(
        st.sampled_from(["a", "b", "b\x00"]),
        st.integers(0, 1),
        st.builds(lambda age, offset: (day - age) * units + offset, ages, offsets),
        st.integers(-5, 9),
        st.just(1),
        st.sampled_from([None, "", "x", "y"]),
    )
    return st.lists(row, min_size=1, max_size=6)
