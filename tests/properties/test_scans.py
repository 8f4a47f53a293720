"""Scans and data sets give the rows that reads give, whatever happens to the table."""

from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.tables import bag, field_changes, keys, predicates, ranges
from tests.properties.test_queries import ACTIONS, World, world


def check_a_scan(it: World, data: st.DataObject) -> None:
    schema = it.schema
    asked: dict[str, Any] = {}
    if data.draw(st.booleans()):
        asked["ranges"] = data.draw(st.lists(ranges(schema), min_size=1, max_size=3))
    if data.draw(st.booleans()):
        asked["keys"] = data.draw(st.lists(keys(schema), min_size=1, max_size=3))
    if (where := data.draw(st.none() | predicates(schema, it.rows))) is not None:
        asked["where"] = where
    names = [f.name for f in schema.fields]
    columns = data.draw(st.none() | st.lists(st.sampled_from(names), unique=True, min_size=1))
    wanted = it.table.query(**asked, columns=columns).read_all()
    found = it.table.scan(**asked, columns=columns).read_all()
    assert found.schema == wanted.schema
    assert bag(found.to_pylist()) == bag(wanted.to_pylist())
    limit = data.draw(st.integers(0, len(it.rows) + 1))
    some = it.table.scan(**asked, columns=columns, limit=limit).read_all()
    assert some.num_rows == min(limit, wanted.num_rows)
    rest = bag(wanted.to_pylist())
    for row in bag(some.to_pylist()):
        rest.remove(row)


def check_a_data_set(it: World, data: st.DataObject) -> None:
    dataset = it.table.dataset()
    names = [f.name for f in it.schema.fields]
    column = data.draw(st.sampled_from(names))
    is_null = pc.field(column).is_null()
    wanted = it.table.query(where=is_null).read_all()
    assert dataset.count_rows() == len(it.rows)
    assert dataset.count_rows(filter=is_null) == wanted.num_rows
    by_fragment = [
        row
        for fragment in dataset.get_fragments()
        for batch in fragment.scanner(columns=names).to_batches()
        for row in batch.to_pylist()
    ]
    assert bag(by_fragment) == bag(it.rows)
    changes = data.draw(field_changes(it.schema))
    before = bag(it.rows)
    if changes:
        it.table.change_fields(**changes)
    it.act("claim", data)
    it.act("merge", data)
    assert bag(dataset.to_table().to_pylist()) == before, "it stays at its version"


def check_a_life(data: st.DataObject) -> None:
    with world(data) as it:
        for action in data.draw(st.lists(st.sampled_from(ACTIONS), min_size=2, max_size=10)):
            it.act(action, data)
        for _ in range(3):
            check_a_scan(it, data)
        if data.draw(st.booleans()):
            it.lake.run()
            check_a_scan(it, data)
        check_a_data_set(it, data)
        it.table.clear()
        assert it.table.scan().read_all().num_rows == 0


QUICK = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
LONG = settings(QUICK, max_examples=800)


@QUICK
@given(st.data())
def test_scans_give_the_rows_of_reads(data: st.DataObject) -> None:
    check_a_life(data)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@LONG
@given(st.data())
def test_scans_give_the_rows_of_reads_at_length(data: st.DataObject) -> None:
    check_a_life(data)
