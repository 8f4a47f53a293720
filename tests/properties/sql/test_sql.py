"""SQL and scans give what DuckDB gives over the same rows in memory, of the newest version and of
older ones, whatever happens to the table."""

import math
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.errors import VersionExpiredError
from lakebed.model.schema import Schema
from lakebed.model.versions import AsOf
from tests.properties.sql.statements import Statement, statements
from tests.properties.tables import (
    Row,
    arrow,
    bag,
    has_key,
    kept_rows,
    key_values,
    keys,
    predicates,
)
from tests.properties.test_queries import ACTIONS, World, world

STEPS = (*ACTIONS, "clear", "delete keys", "delete where", "keep", "keep", "tag")


class Copy:
    """A version as it was, in an engine that has its rows in memory."""

    def __init__(self, number: int, schema: Schema, rows: list[Row]) -> None:
        self.number = number
        self.tag = ""
        self.schema = schema
        self.rows = list(rows)
        self.engine = duckdb.connect(config={"python_enable_replacements": "false"})
        self.engine.execute("SET TimeZone = 'UTC'").fetchall()
        self.engine.register("given", arrow(schema, rows))
        self.engine.execute("CREATE TABLE t AS FROM given").fetchall()

    def answer(self, asked: Statement) -> pa.Table:
        given = asked.parameters or None
        return self.engine.sql(asked.text, params=given).to_arrow_table()


class Life:
    """A table, and copies of some of its versions."""

    def __init__(self, world: World, data: st.DataObject) -> None:
        self.world, self.data = world, data
        self.copies: list[Copy] = []

    def step(self, action: str) -> None:
        it, data = self.world, self.data
        match action:
            case "clear":
                it.table.clear()
                it.rows = []
            case "delete keys":
                gone = data.draw(st.lists(keys(it.schema), min_size=1, max_size=2))
                it.table.delete(keys=gone)
                it.rows = [
                    row for row in it.rows if not any(has_key(it.schema, row, key) for key in gone)
                ]
            case "delete where":
                where = data.draw(predicates(it.schema, it.rows))
                it.lake.run()  # compactions hold files that this writes again
                it.table.delete(where=where)
                taken = bag(kept_rows(it.schema, it.rows, where))
                it.rows = [row for row in it.rows if bag([row])[0] not in taken]
            case "keep":
                self.copies.append(self.copy())
            case "tag" if free := self.untagged():
                copy = data.draw(st.sampled_from(free))
                with suppress(VersionExpiredError):
                    it.table.tag(f"v{copy.number}", as_of=copy.number)
                    copy.tag = f"v{copy.number}"
            case "tag":
                pass
            case _:
                it.act(action, data)

    def untagged(self) -> list[Copy]:
        """Return the copies of versions that have no tag; of one version there may be several."""
        tagged = {copy.number for copy in self.copies if copy.tag}
        return [copy for copy in self.copies if copy.number not in tagged]

    def copy(self) -> Copy:
        number = self.world.lake.status("t")[0].number
        return Copy(number, self.world.schema, self.world.rows)

    def check(self, copy: Copy, as_of: AsOf | None = None) -> None:
        """Ask a question, and scan a range."""
        asked = self.data.draw(statements(copy.schema, copy.rows))
        wanted = copy.answer(asked)
        found = self.world.lake.sql(
            asked.text,
            asked.parameters,
            as_of=as_of,
        ).read_all()
        assert found.schema == wanted.schema
        assert shown(found, asked) == shown(wanted, asked), asked
        key = copy.schema.row_keys[0].name
        ends = st.sampled_from(key_values(copy.schema, key))
        least, most = self.data.draw(ends), self.data.draw(ends)
        if most < least:
            least, most = most, least
        scanned = self.world.table.scan(
            ranges={key: (least, most)},
            as_of=as_of,
        ).read_all()
        text = f'from t where "{key}" >= ? and "{key}" < ?'
        in_range = copy.answer(Statement(text, [least, most]))
        assert bag(scanned.to_pylist()) == bag(in_range.to_pylist())

    def check_copies(self) -> None:
        for copy in self.copies:
            if copy.tag:
                self.check(copy, copy.tag)
            try:
                self.check(copy, copy.number)
            except VersionExpiredError:
                horizon = self.world.lake.status("t")[0].horizon
                assert horizon is not None
                assert copy.number < horizon
                assert not copy.tag


def shown(found: pa.Table, asked: Statement) -> list[str]:
    """Return rows as texts, which are compared; columns by place, for some have no names."""
    rows = [
        {f"{place:02}": _shown(value) for place, value in enumerate(row.values())}
        for row in found.rename_columns([f"c{n}" for n in range(found.num_columns)]).to_pylist()
    ]
    return [bag([row])[0] for row in rows] if asked.is_ordered else bag(rows)


def _shown(value: Any) -> Any:  # noqa: ANN401  a value of any type
    """Zeros are equal, so that either may stand for a group."""
    return 0.0 if isinstance(value, float) and not math.isnan(value) and value == 0 else value


def check_a_life(data: st.DataObject) -> None:
    with world(data) as it:
        life = Life(it, data)
        for action in data.draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=12)):
            life.step(action)
            if action != "read":
                life.check(life.copy())
        life.check_copies()
        it.lake.run()
        life.check(life.copy())
        life.check_copies()


QUICK = settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
LONG = settings(QUICK, max_examples=600)


@QUICK
@given(st.data())
def test_sql_gives_what_duckdb_gives_over_rows_in_memory(data: st.DataObject) -> None:
    check_a_life(data)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@LONG
@given(st.data())
def test_sql_gives_what_duckdb_gives_over_rows_in_memory_at_length(data: st.DataObject) -> None:
    check_a_life(data)
