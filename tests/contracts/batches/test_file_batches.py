"""Files that wait and batches: each file in one batch, one batch open at a time."""

import threading

import pytest

from lakebed.errors import ConflictError, InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId
from lakebed.ports.file_batches import (
    NAME_BYTES_MAX,
    Batch,
    BatchHead,
    FileBatches,
    Refusal,
    SubmitCounts,
    SubmittedFile,
)
from tests.contracts.conftest import BatchesOf

TABLE, OTHER = TableId("t1"), TableId("t2")
START = 1_800_000_000 * MICROS_PER_SECOND
LATER = Micros(START + 1_000_000 * MICROS_PER_SECOND)


@pytest.fixture
def view(file_batches: BatchesOf) -> FileBatches:
    return file_batches()


def file(name: str, version: str = "v1", *, at: int = 0, size: int = 7) -> SubmittedFile:
    return SubmittedFile(name, size, version, Micros(START + at))


def batch(number: int, *files: SubmittedFile) -> Batch:
    return Batch(number=number, files=files, target="ingest", planned=Micros(START))


def names(files: list[SubmittedFile]) -> list[str]:
    return [one.name for one in files]


def done(view: FileBatches, *files: SubmittedFile) -> int:
    """Take files through all steps of the next batch, but for its end."""
    head = view.head(TABLE)
    made = batch(head.planned + 1, *files)
    view.plan(TABLE, made, head)
    view.take(TABLE, made, until=LATER)
    view.remove(TABLE, made)
    view.finish(TABLE, made.number, sent=Micros(START + 9))
    return made.number


def test_files_wait_until_a_batch_has_them_the_oldest_first(file_batches: BatchesOf) -> None:
    view = file_batches()
    assert view.submit(TABLE, [file("b", at=2), file("a", at=2), file("c", at=1)]) == (3, 0)
    assert view.submit(OTHER, [file("d")]) == (1, 0)
    assert names(file_batches().pending(TABLE, files_max=100)) == ["c", "a", "b"]
    assert file_batches().pending(TABLE, files_max=100)[0] == file("c", at=1)
    assert file_batches().tables() == [TABLE, OTHER]
    assert len(view.pending(TABLE, files_max=2)) == 2
    done(view, file("a", at=2), file("c", at=1))
    assert names(file_batches().pending(TABLE, files_max=100)) == ["b"]
    assert names(file_batches().pending(OTHER, files_max=100)) == ["d"]


def test_as_many_files_are_listed_as_are_asked_for(view: FileBatches) -> None:
    view.submit(TABLE, [file(f"f{n}") for n in range(20)])
    for files_max in (1, 5, 19, 20, 21):
        assert len(view.pending(TABLE, files_max=files_max)) == min(files_max, 20)


def test_a_file_that_waits_as_it_is_is_a_double_and_keeps_its_age(view: FileBatches) -> None:
    view.submit(TABLE, [file("a")])
    assert view.submit(TABLE, [file("a", at=5), file("b"), file("b")]) == SubmitCounts(1, 2)
    assert view.pending(TABLE, files_max=9) == [file("a"), file("b")]


def test_another_version_is_another_file_which_no_batch_takes_along(view: FileBatches) -> None:
    view.submit(TABLE, [file("a")])
    view.submit(TABLE, [file("a", "v2", at=1)])
    done(view, file("a"))
    assert view.pending(TABLE, files_max=9) == [file("a", "v2", at=1)]


def test_what_was_taken_as_it_is_is_a_double_as_long_as_that_is_remembered(
    view: FileBatches,
) -> None:
    view.submit(TABLE, [file("a"), file("b")])
    done(view, file("a"))
    assert view.submit(TABLE, [file("a", at=9)]) == SubmitCounts(0, 1)
    assert view.submit(OTHER, [file("a", at=9)]) == SubmitCounts(1, 0)
    assert view.submit(TABLE, [file("a", "v2"), file("b")]) == SubmitCounts(1, 1)
    late = SubmittedFile("a", 7, "v1", LATER)
    assert view.submit(TABLE, [late]) == SubmitCounts(1, 0)


def test_what_is_taken_and_waits_still_is_a_double(view: FileBatches) -> None:
    view.submit(TABLE, [file("a")])
    view.plan(TABLE, batch(1, file("a")), BatchHead())
    view.take(TABLE, batch(1, file("a")), until=LATER)
    assert view.submit(TABLE, [file("a", at=3)]) == SubmitCounts(0, 1)
    view.remove(TABLE, batch(1, file("a")))
    assert view.submit(TABLE, [file("a", at=3)]) == SubmitCounts(0, 1)
    assert view.pending(TABLE, files_max=9) == []


def test_one_batch_is_open_at_a_time(file_batches: BatchesOf) -> None:
    view, other = file_batches(), file_batches()
    assert view.head(TABLE) == BatchHead(0, 0, 0)
    assert view.batch(TABLE, 1) is None
    view.plan(TABLE, batch(1, file("a")), BatchHead())
    for head in (BatchHead(), view.head(TABLE)):
        with pytest.raises(ConflictError):
            other.plan(TABLE, batch(2, file("b")), head)
    assert other.head(TABLE) == BatchHead(1, 0, 0)
    assert other.batch(TABLE, 1) == batch(1, file("a"))
    other.finish(TABLE, 1, sent=Micros(START + 4))
    assert view.head(TABLE) == BatchHead(1, 1, 0)
    with pytest.raises(ConflictError):
        view.plan(TABLE, batch(1, file("b")), view.head(TABLE))
    view.plan(TABLE, batch(2, file("b")), view.head(TABLE))
    assert [one.number for one in other.batches(TABLE)] == [2, 1]


def test_numbers_may_be_left_out(view: FileBatches) -> None:
    view.plan(TABLE, batch(7, file("a")), BatchHead())
    assert view.head(TABLE) == BatchHead(7, 6, 6)
    view.finish(TABLE, 6, sent=Micros(START))
    assert view.head(TABLE) == BatchHead(7, 6, 6)
    view.finish(TABLE, 7, sent=Micros(START))
    view.plan(TABLE, batch(9, file("b")), view.head(TABLE))
    assert view.head(TABLE) == BatchHead(9, 8, 6)
    view.end(TABLE, 7, free=[])
    assert view.head(TABLE) == BatchHead(9, 8, 7)


def test_each_step_again_changes_nothing(view: FileBatches) -> None:
    view.submit(TABLE, [file("a")])
    done(view, file("a"))
    before = view.batch(TABLE, 1)
    assert before is not None
    assert (before.sends, before.sent) == (1, START + 9)
    view.take(TABLE, batch(1, file("a")), until=LATER)
    view.remove(TABLE, batch(1, file("a")))
    view.finish(TABLE, 1, sent=Micros(START + 77))
    assert view.batch(TABLE, 1) == before
    assert view.head(TABLE) == BatchHead(1, 1, 0)


def test_jobs_are_counted_when_they_are_sent_again(view: FileBatches) -> None:
    done(view, file("a"))
    view.sent_again(TABLE, 1, sends=2, sent=Micros(START + 50))
    view.sent_again(TABLE, 1, sends=2, sent=Micros(START + 60))
    view.sent_again(TABLE, 1, sends=1, sent=Micros(START + 70))
    view.sent_again(TABLE, 5, sends=1, sent=Micros(START))
    found = view.batch(TABLE, 1)
    assert found is not None
    assert (found.sends, found.sent) == (2, START + 50)
    assert view.batch(TABLE, 5) is None


def test_refusals_are_kept_in_their_order(file_batches: BatchesOf) -> None:
    view = file_batches()
    done(view, file("a"), file("b"), file("c"))
    view.refuse(TABLE, 1, [Refusal(1, "it is gone")], known=0)
    with pytest.raises(ConflictError):
        file_batches().refuse(TABLE, 1, [Refusal(0, "empty")], known=0)
    view.refuse(TABLE, 1, [Refusal(2, "é" * 90)], known=1)
    found = file_batches().batch(TABLE, 1)
    assert found is not None
    assert found.refused == (Refusal(1, "it is gone"), Refusal(2, "é" * 90))
    assert [names(list(found.left(n))) for n in (0, 1, None)] == [
        ["a", "b", "c"],
        ["a", "c"],
        ["a"],
    ]
    with pytest.raises(ConflictError):
        view.refuse(TABLE, 9, [Refusal(0, "no such batch")], known=0)


def test_what_a_job_left_out_may_be_submitted_again_once_it_ended(view: FileBatches) -> None:
    view.submit(TABLE, [file("a"), file("b")])
    done(view, file("a"), file("b"))
    for _ in ("once", "again"):
        view.end(TABLE, 1, free=[file("b")])
        assert view.head(TABLE) == BatchHead(1, 1, 1)
    assert view.submit(TABLE, [file("a"), file("b")]) == SubmitCounts(1, 1)
    done(view, file("b"))
    view.end(TABLE, 1, free=[file("b")])  # a late one, which is none of its files any more
    assert view.submit(TABLE, [file("b")]) == SubmitCounts(0, 1)


def test_a_late_step_of_an_ended_batch_touches_nothing_that_came_since(view: FileBatches) -> None:
    """A batcher hung between two steps, while another one saw the batch to its end."""
    view.submit(TABLE, [file("a")])
    done(view, file("a"))
    view.end(TABLE, 1, free=[file("a")])
    assert view.submit(TABLE, [file("a", at=50)]) == SubmitCounts(1, 0)
    view.take(TABLE, batch(1, file("a")), until=LATER)
    view.remove(TABLE, batch(1, file("a")))
    assert view.pending(TABLE, files_max=9) == [file("a", at=50)]
    done(view, file("a", at=50))
    view.end(TABLE, 2, free=[file("a", at=50)])
    view.take(TABLE, batch(1, file("a")), until=LATER)
    assert view.submit(TABLE, [file("a", at=60)]) == SubmitCounts(1, 0)


def test_no_batch_ends_that_is_open(view: FileBatches) -> None:
    view.plan(TABLE, batch(1, file("a")), BatchHead())
    view.end(TABLE, 1, free=[])
    assert view.head(TABLE) == BatchHead(1, 0, 0)


def test_a_table_is_listed_until_nothing_is_left_to_do(view: FileBatches) -> None:
    view.submit(TABLE, [file("a")])
    view.rest(TABLE)
    assert view.tables() == [TABLE]
    done(view, file("a"))
    view.rest(TABLE)
    assert view.tables() == [TABLE]
    view.end(TABLE, 1, free=[])
    view.rest(TABLE)
    assert view.tables() == []
    view.submit(TABLE, [file("c")])
    assert view.tables() == [TABLE]


def test_batches_are_listed_in_pages_the_newest_first(view: FileBatches) -> None:
    for number in range(1, 8):
        done(view, file(f"f{number}"))
    assert [b.number for b in view.batches(TABLE, batches_max=3)] == [7, 6, 5]
    assert [b.number for b in view.batches(TABLE, below=5, batches_max=3)] == [4, 3, 2]
    assert [b.number for b in view.batches(TABLE, below=2)] == [1]
    assert view.batches(OTHER) == []


def test_a_large_batch_is_kept_whole(view: FileBatches) -> None:
    many = [file(f"s3://landing/{'x' * 80}/{n:06}.parquet", f"{n:032x}") for n in range(800)]
    done(view, *many)
    view.refuse(TABLE, 1, [Refusal(n, "y" * 200) for n in range(800)], known=0)
    found = view.batch(TABLE, 1)
    assert found is not None
    assert found.files == tuple(many)
    assert len(found.refused) == 800


def test_all_of_a_dropped_table_goes(view: FileBatches) -> None:
    view.submit(OTHER, [file("z")])
    view.submit(TABLE, [file(f"f{n}") for n in range(20)])
    done(view, file("f1"))
    for _ in ("once", "again"):
        view.drop(TABLE)
        assert view.tables() == [OTHER]
        assert view.pending(TABLE, files_max=99) == []
        assert view.batches(TABLE) == []
        assert view.head(TABLE) == BatchHead()


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "\ud800", "x" * (NAME_BYTES_MAX + 1)])
def test_a_name_that_cannot_be_kept_is_refused_and_nothing_waits(
    view: FileBatches, name: str
) -> None:
    with pytest.raises(InvalidError, match="rename it"):
        view.submit(TABLE, [file("a"), file(name)])
    assert view.pending(TABLE, files_max=9) == []


def test_of_several_threads_that_plan_one_does(file_batches: BatchesOf) -> None:
    done_by: list[int] = []
    views = [file_batches() for _ in range(4)]

    def plan(number: int) -> None:
        try:
            views[number].plan(TABLE, batch(1, file(f"of-{number}")), BatchHead())
            done_by.append(number)
        except ConflictError:
            pass

    threads = [threading.Thread(target=plan, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    (winner,) = done_by
    found = views[0].batch(TABLE, 1)
    assert found is not None
    assert names(list(found.files)) == [f"of-{winner}"]
