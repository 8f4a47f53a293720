"""What was landed is read again, in order, from any position, while more is landed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.feed_errors import PositionGoneError
from lakebed.landing.landing_source import LandingSource
from lakebed.statestore.table_state.feed_records import connections
from tests.unit.feeds.test_run_feeds import FedLake


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[FedLake]:
    given = FedLake(tmp_path)
    yield given
    given.lake.close()


def source_of(fed: FedLake) -> LandingSource:
    app = fed.lake._app
    table = app.catalog.find("access_landing")
    with table.head.reading() as state:
        (known,) = connections(state)
    return LandingSource(table, known.id, app.query, app.logs.open(table.id))


def values(source: LandingSource, begin: int = 0, bytes_max: int = 1 << 20) -> list[bytes]:
    found = []
    for split in source.splits():
        reader = source.open(split, begin)
        at = begin
        while (records := reader.read(bytes_max=bytes_max)) is not None:
            positions = records.batch["position"].to_pylist()
            assert records.begin <= positions[0]
            assert records.end == positions[-1] + 1
            assert at <= positions[0]
            at = records.end
            found += records.batch["value"].to_pylist()
        assert reader.behind() == 0
        reader.close()
    return found


@pytest.mark.parametrize("bytes_max", [1, 100, 1 << 20])
def test_what_was_landed_comes_back_in_order_in_batches_of_any_size(
    fed: FedLake, bytes_max: int
) -> None:
    fed.write("a.log", 60)
    fed.run()
    assert values(source_of(fed), bytes_max=bytes_max) == fed.written


def test_a_reader_goes_on_when_more_is_landed(fed: FedLake) -> None:
    fed.write("a.log", 10)
    fed.run()
    source = source_of(fed)
    (split,) = source.splits()
    reader = source.open(split, 0)
    first = reader.read(bytes_max=1 << 20)
    assert first is not None
    assert reader.read(bytes_max=1 << 20) is None
    fed.write("a.log", 3)
    fed.run()
    second = reader.read(bytes_max=1 << 20)
    assert second is not None
    assert second.batch["value"].to_pylist() == fed.written[10:]
    again = source.open(split, first.end).read(bytes_max=1 << 20)
    assert again is not None
    assert again.batch.equals(second.batch)


def early_rows(fed: FedLake) -> None:
    early = lakebed.Processing(filter=lakebed.field("position") < 20)
    fed.lake.table("access_landing").change_processing(early)


def test_what_the_table_left_out_when_it_landed_holds_up_no_reader(fed: FedLake) -> None:
    fed.write("a.log", 2)
    fed.run()
    early_rows(fed)
    fed.write("a.log", 10)
    fed.run()
    source = source_of(fed)
    assert values(source) == fed.landed()
    assert len(fed.landed()) < len(fed.written)


def test_what_was_landed_and_is_gone_is_told_again_and_again(fed: FedLake) -> None:
    fed.write("a.log", 10)
    fed.run()
    before = values(source_of(fed))
    early_rows(fed)
    source = source_of(fed)
    (split,) = source.splits()
    reader, found = source.open(split, 0), []
    while True:
        try:
            records = reader.read(bytes_max=1 << 20)
        except PositionGoneError as error:
            for _ in range(2):
                with pytest.raises(PositionGoneError, match=f"wanted={error.first} "):
                    reader.read(bytes_max=1 << 20)
            if error.end >= source.end_of(split.name)[0]:
                break
            reader = source.open(split, error.end)
            continue
        assert records is not None
        found += records.batch["value"].to_pylist()
    assert found == before[: len(found)]
    assert found == fed.landed()
