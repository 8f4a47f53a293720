"""A table with processing gives what the plain model gives, whatever happens to it meanwhile."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed import field
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from lakebed.sorted_files.sorting import engines
from tests.properties.processings import TIMES, bag, expected, tables, to_arrow, to_rows
from tests.properties.test_queries import IN_MEMORY, SETTINGS

ACTIONS = ("ingest", "ingest", "split", "compact", "merge", "merge", "wait", "run", "ask")


@pytest.mark.parametrize("kernel_rows_min", [0, engines.COMPILED_ROWS_MIN])
@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_a_table_gives_what_the_plain_model_gives(
    monkeypatch: pytest.MonkeyPatch, kernel_rows_min: int, data: st.DataObject
) -> None:
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", kernel_rows_min)
    made = data.draw(tables())
    schema, clock = made.schema, VirtualClock(TIMES[0])
    rows = []
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder,
        Lake(open_local(Path(folder, "lake"), clock=clock)) as lake,
    ):
        table = lake.create_table("t", schema, settings=SETTINGS, processing=made.processing)

        def ask() -> None:
            wanted = expected(made, rows, clock.now())
            names = data.draw(
                st.lists(st.sampled_from(table.arrow_schema.names), unique=True, min_size=1)
            )
            assert bag(to_rows(table.query().read_all().to_batches())) == bag(wanted)
            places = [table.arrow_schema.names.index(name) for name in names]
            fewer = [tuple(row[place] for place in places) for row in wanted]
            found = table.query(columns=names).read_all()
            assert bag(to_rows(found.to_batches())) == bag(fewer)
            for name in ("early", "at"):
                tested = table.arrow_schema.names.index(name)
                asked = table.query(columns=names, where=field(name) > 0).read_all()
                rest = [f for f, row in zip(fewer, wanted, strict=True) if row[tested] > 0]
                assert bag(to_rows(asked.to_batches())) == bag(rest)
            limit = data.draw(st.integers(0, 4))
            assert table.query(limit=limit).read_all().num_rows == min(limit, len(wanted))

        for action in data.draw(st.lists(st.sampled_from(ACTIONS), min_size=2, max_size=10)):
            match action:
                case "ingest":
                    some = data.draw(st.lists(made.rows, min_size=1, max_size=12))
                    table.ingest(to_arrow(schema, some))
                    rows += some
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
                    clock.advance(data.draw(st.sampled_from([3_600, 86_400, 86_401])))
                case "run":
                    lake.run()
                case _:
                    ask()
        ask()
        table.compact()
        ask()
        report = lake.fsck(deep=True)
        assert not [f for f in report.findings if f.severity == "damage"], report.findings
