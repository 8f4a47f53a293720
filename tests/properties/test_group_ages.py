"""A group leaves when its merged time is too old, whatever was compacted when."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.row_layout import RowLayout
from lakebed.backends.memory.row_processing import Row, TupleWork
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from lakebed.model.names import Micros
from lakebed.model.processing import ProcessingPass
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.sorting import engines
from tests.properties.aging_groups import Aging, agings, rows_of
from tests.properties.processings import DAY, bag, to_arrow, to_rows
from tests.properties.test_queries import IN_MEMORY, SETTINGS

Do = Callable[[Aging, ProcessingPass, Sequence[list[Row]], st.DataObject], list[Row]]
MICROS = DAY * 1_000_000


def by_arrow(
    made: Aging, given_: ProcessingPass, files: Sequence[list[Row]], data: st.DataObject
) -> list[Row]:
    """Do what ingest, compaction and query do: select, sort, merge; by windows of any size."""
    work = RowWork(made.schema, given_)
    selected = [work.selected(to_arrow(made.schema, rows)) for rows in files]
    keys = [(field.name, "ascending") for field in made.schema.key_fields]
    table = pa.Table.from_batches(selected, arrow_schema(made.schema)).sort_by(keys)
    cuts = data.draw(st.lists(st.integers(0, 4), max_size=4))

    def windows() -> Iterator[pa.RecordBatch]:
        start = 0
        for rows in (*cuts, len(table)):
            yield from table.combine_chunks().slice(start, rows).to_batches()
            start += rows

    return to_rows(list(work.merged(windows())))


def by_tuples(
    made: Aging, given_: ProcessingPass, files: Sequence[list[Row]], data: st.DataObject
) -> list[Row]:
    work, layout = TupleWork(made.schema, given_), RowLayout(made.schema)
    selected = work.selected(row for rows in files for row in rows)
    keyed = sorted(((layout.key(row), row) for row in selected), key=lambda pair: pair[0])
    return [row for _, row in work.merged(keyed)]


@pytest.mark.parametrize("do", [by_arrow, by_tuples])
@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_groups_are_the_same_whatever_was_compacted_when(do: Do, data: st.DataObject) -> None:
    made = data.draw(agings())
    waits = st.lists(st.sampled_from([0, 0, 1, 1, 1, 2, 2, 3, 5, 9]), min_size=2, max_size=10)
    days = list(accumulate(data.draw(waits), initial=10))
    files: list[list[Row]] = []
    rows: list[Row] = []
    for day in days[:-1]:
        at = Micros(day * MICROS + MICROS // 3)
        action = data.draw(st.sampled_from(["ingest", "ingest", "some", "all"]))
        if action == "ingest" or not files:
            some = data.draw(rows_of(made, day))
            rows += [row for row in some if made.is_taken(row, at)]
            files.append(do(made, ProcessingPass(made.processing, at, "ingest"), [some], data))
        else:
            whole = action == "all"
            size = len(files) if whole else data.draw(st.integers(1, len(files)))
            chosen = data.draw(st.permutations(files))
            given_ = ProcessingPass(made.processing, at, "compaction", whole)
            files = [do(made, given_, chosen[:size], data), *chosen[size:]]
    at = Micros(days[-1] * MICROS + MICROS // 3)
    found = do(made, ProcessingPass(made.processing, at, "query"), files, data)
    assert bag(found) == bag(made.expected(rows, at))


ACTIONS = ("ingest", "ingest", "split", "compact", "merge", "merge", "wait", "wait", "run", "ask")


@pytest.mark.parametrize("kernel_rows_min", [0, engines.COMPILED_ROWS_MIN])
@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_a_table_gives_what_the_plain_model_gives(
    monkeypatch: pytest.MonkeyPatch, kernel_rows_min: int, data: st.DataObject
) -> None:
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", kernel_rows_min)
    made = data.draw(agings())
    clock = VirtualClock(10 * MICROS)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder,
        Lake(open_local(Path(folder, "lake"), clock=clock)) as lake,
    ):
        table = lake.create_table("t", made.schema, settings=SETTINGS, processing=made.processing)

        def ask() -> None:
            wanted = made.expected(rows, clock.now())
            assert bag(to_rows(table.query().read_all().to_batches())) == bag(wanted)
            assert table.count() == len(wanted)
            names = data.draw(st.permutations(table.arrow_schema.names)).copy()[:2]
            found = table.query(columns=names).read_all()
            places = [table.arrow_schema.names.index(name) for name in names]
            fewer = [tuple(row[place] for place in places) for row in wanted]
            assert bag(to_rows(found.to_batches())) == bag(fewer)

        for action in data.draw(st.lists(st.sampled_from(ACTIONS), min_size=3, max_size=14)):
            match action:
                case "ingest":
                    some = data.draw(rows_of(made, clock.now() // MICROS))
                    at = min(table._opened.head.log_time(), clock.now())
                    table.ingest(to_arrow(made.schema, some))
                    rows += [row for row in some if made.is_taken(row, at)]
                case "split":
                    table._app.split_leaves.run(table._opened)
                case "compact":
                    table._app.create_jobs.run(table._opened, everything=data.draw(st.booleans()))
                case "merge":
                    with table._opened.head.reading() as state:
                        jobs = state.jobs()
                    for job in jobs[:2]:
                        table._app.run_job.run(table._opened, job.id)
                case "wait":
                    clock.advance(data.draw(st.sampled_from([3_600, DAY - 1, DAY, 4 * DAY])))
                case "run":
                    lake.run()
                case _:
                    ask()
        ask()
        table.compact()
        ask()
        report = lake.fsck(deep=True)
        assert not [f for f in report.findings if f.severity == "damage"], report.findings
