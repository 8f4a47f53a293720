"""A delete of a range of keys is one entry: exact, at once, and for good (H39, H40)."""

from textwrap import dedent

import pytest

from lakebed.errors import ClaimLostError, ConflictError, FormatGateError, InvalidError
from lakebed.model.formats import Formats
from lakebed.model.names import JobId
from lakebed.model.ranges import KeyRange
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.file_changes import AddFiles, ReplaceFiles
from lakebed.statestore.log_entries.range_deletes import DeleteRanges, RecordDeleted
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.placing import own_key_range
from lakebed.statestore.table_state.range_contents import digest_of_files, leaves_in_ranges
from lakebed.statestore.table_state.state import TableState
from tests.dsl import TableStory, point


def text(picture: str) -> str:
    return dedent(picture).strip("\n")


def delete(story: TableStory, least: str, end: str | None, **more: object) -> DeleteRanges:
    """Return the delete of keys from one up to another; "" and None: the ends of all keys."""
    low, high = (point(least) if least else b""), (None if end is None else point(end))
    return DeleteRanges(((low, high),), **more)  # type: ignore[arg-type]  # plain integers


def test_a_leaf_is_cut_at_both_ends_and_what_lies_between_is_garbage_or_shared() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), wide=90)
    story.given_files("all", keys=("h", "k"), mid=10)
    story.given_files("all", keys=("a", "c"), below=20)
    story.when_committed(delete(story, "g", "p"))
    left, middle, right = story.state.tree().leaves()
    story.partitions |= {"L": left, "M": middle, "R": right}
    assert story.summary() == text("""
        L
          below        20 rows
          wide   about 30 rows
        M
        R
          wide  about 30 rows
        garbage
          mid""")


def test_what_lies_wholly_inside_goes_without_a_cut() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", keys=("a", "c"), low=1)
    story.given_files("R", keys=("q", "r"), high=2)
    story.given_files("R", keys=("x", "y"), higher=3)
    story.when_committed(delete(story, "a", "t"))
    assert story.summary() == "L\nR\n  higher  3 rows\ngarbage\n  high\n  low"


def test_an_end_that_no_file_crosses_makes_no_leaf() -> None:
    story = TableStory()
    story.given_files("all", keys=("b", "z"), one=10)
    story.when_committed(delete(story, "a", "m"))
    assert [own_key_range(story.state, leaf).min for leaf in story.state.tree().leaves()] == [
        b"",
        point("m"),
    ]


def test_rows_are_shared_by_the_samples_that_the_delete_carries() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), one=100)
    shares = ((story.partitions["all"], ((story.file("one"), (60, 30, 10)),)),)
    story.when_committed(delete(story, "g", "p", shares=shares))
    assert sorted(r.rows for r in story.state.all_references()) == [10, 60]


def test_shares_of_a_leaf_that_changed_since_are_left_out() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), one=100)
    shares = ((story.partitions["all"], ((story.file("one"), (60, 40)),)),)
    story.when_committed(delete(story, "g", "p", shares=shares))
    assert sorted(r.rows for r in story.state.all_references()) == [33, 34]


def test_a_late_compaction_brings_no_deleted_row_back() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), one=90)
    story.given_files("all", keys=("a", "z"), two=90)
    story.when_claimed("job", "all", "one", "two")
    (output,) = story.new_files("all", keys=("a", "z"), out=180)
    names = tuple(map(story.file, ("one", "two")))
    late = story.transaction(ReplaceFiles(JobId("job"), story.partitions["all"], names, output))
    story.when_committed(delete(story, "g", "p"))
    assert not story.state.jobs()
    before = story.state.digest()
    with pytest.raises(ClaimLostError):
        story.head.commit(late)
    assert story.state.digest() == before
    left = next(iter(story.state.tree().leaves()))
    story.partitions["L"] = left
    story.when_claimed("again", "L", "one", "two")  # free for another job


def test_a_claim_that_holds_nothing_of_the_range_stays() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", keys=("a", "c"), one=1, two=2)
    story.given_files("L", keys=("f", "h"), three=3)
    story.given_files("R", four=4)
    story.when_claimed("job", "L", "one", "two")
    story.when_claimed("gone", "R", "four")
    story.when_committed(delete(story, "f", None))
    assert [job.id for job in story.state.jobs()] == ["job"]
    story.when_replaced("job", "L", "one", "two", keys=("a", "c"), out=3)
    assert story.summary().startswith("L\n  out  3 rows\nR\ngarbage")


def test_rows_of_a_commit_that_comes_later_stay_whatever_its_base() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), one=90)
    late = story.transaction(AddFiles(story.new_files("all", keys=("h", "k"), late=5)))
    story.when_committed(delete(story, "g", "p"))
    story.head.commit(late)
    assert {r.file.name: r.rows for r in story.state.all_references()}[story.file("late")] == 5


def test_what_is_not_what_was_counted_is_refused_and_changes_nothing() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), one=90)
    held = digest_of_files(leaves_in_ranges(story.state, [KeyRange(point("g"), point("p"))]))
    story.given_files("all", keys=("x", "y"), elsewhere=1)
    counted = delete(story, "g", "p", files=held)
    story.given_files("all", keys=("h", "i"), more=1)
    before = story.state.digest()
    with pytest.raises(ConflictError, match="do not hold what was counted"):
        story.when_committed(counted)
    assert story.state.digest() == before


def test_files_elsewhere_do_not_refuse_what_was_counted() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), one=90)
    held = digest_of_files(leaves_in_ranges(story.state, [KeyRange(point("g"), point("p"))]))
    story.given_files("all", keys=("x", "y"), elsewhere=1)
    story.when_committed(delete(story, "g", "p", files=held))


def test_several_ranges_cut_a_leaf_at_once() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), one=100)
    shares = ((story.partitions["all"], ((story.file("one"), (10, 20, 30, 25, 15)),)),)
    ranges = ((point("b"), point("c")), (point("m"), point("p")))
    story.when_committed(DeleteRanges(ranges, b"", shares))
    leaves = list(story.state.tree().leaves())
    rows = [[r.rows for r, _ in story.state.references(leaf)] for leaf in leaves]
    assert rows == [[10], [], [30], [], [15]]


def test_all_keys_go_without_a_cut_and_the_leaves_stay() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", a=1)
    story.given_files("R", b=1)
    story.when_committed(delete(story, "", None))
    assert story.summary() == "L\nR\ngarbage\n  a\n  b"


@pytest.mark.parametrize(
    "change",
    [
        DeleteRanges(()),
        DeleteRanges(((point("b"), point("b")),)),
        DeleteRanges(((point("c"), point("b")),)),
        DeleteRanges(((point("c"), point("d")), (point("a"), point("b")))),
        DeleteRanges(((point("a"), point("c")), (point("b"), point("d")))),
        DeleteRanges(((point("a"), None), (point("b"), None))),
        DeleteRanges(((b"half", None),)),
        DeleteRanges(((b"", point("a") + point("b")),)),
        DeleteRanges(((b"", b""),)),
        DeleteRanges(
            ((b"", None),),
            b"",
            ((1, ((b"x" * 16, (1, -1)),)),),  # type: ignore[arg-type]  # plain integers
        ),
    ],
)
def test_what_is_no_range_is_refused_and_changes_nothing(change: DeleteRanges) -> None:
    story = TableStory()
    story.given_files("all", a=1)
    before = story.state.digest()
    with pytest.raises(InvalidError):
        story.when_committed(change)
    assert story.state.digest() == before


def test_the_same_delete_twice_finds_nothing_the_second_time() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "z"), one=90)
    story.when_committed(delete(story, "g", "p"))
    leaves = [*story.state.tree().leaves()]
    rows = sorted(r.rows for r in story.state.all_references())
    story.when_committed(delete(story, "g", "p"))
    assert [*story.state.tree().leaves()] == leaves
    assert sorted(r.rows for r in story.state.all_references()) == rows


def test_a_lake_that_does_not_allow_deletes_refuses_them() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    older = TableHead(
        story.log,
        TableState(open_memory()),
        clock=story.clock,
        rng=story.rng,
        formats=lambda: Formats(entry=5, state=3),
    )
    older.follow()
    with pytest.raises(FormatGateError):
        older.commit(story.transaction(delete(story, "a", "b")))


def test_what_a_job_left_out_is_garbage_from_its_entry_on_and_recorded_once() -> None:
    story = TableStory()
    story.given_files("all", a=5)
    (gone,) = story.new_files("all", gone=2)
    change = RecordDeleted(gone.file, gone.rows)
    story.when_committed(change)
    (garbage,) = story.state.garbage()
    assert (garbage.file, garbage.number) == (gone.file.name, story.state.head().number)
    assert not story.state.references_of(gone.file.name)
    (again,) = story.new_files("all", again=2)
    with pytest.raises(InvalidError, match="added once"):
        change.check(story.state)
    with pytest.raises(InvalidError, match="has no rows"):
        RecordDeleted(again.file, 0).check(story.state)


def test_what_a_job_left_out_has_the_base_of_its_commit_in_its_name() -> None:
    story = TableStory()
    (early,) = story.new_files("all", early=2)
    story.given_files("all", a=5)
    with pytest.raises(AssertionError, match="carry their commit's base"):
        story.when_committed(RecordDeleted(early.file, early.rows))
