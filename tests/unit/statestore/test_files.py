"""What happens to files: added, claimed, replaced, given up, garbage, removed (H18 to H23)."""

from textwrap import dedent

import msgspec
import pytest

from lakebed.errors import ClaimLostError, ConflictError, InvalidError
from lakebed.model.names import JobId, PartitionId
from lakebed.statestore.log_entries.file_changes import AddFiles, ClaimFiles, ReplaceFiles
from tests.dsl import TableStory, bounds


def text(picture: str) -> str:
    return dedent(picture).strip("\n")


def test_a_story_shows_leaves_files_rows_claims_and_garbage() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", a=500, b=10, c=20, d=30)
    story.given_files("R", e=7)
    story.when_claimed("job-1", "L", "b", "c")
    story.when_claimed("job-2", "R", "e")
    story.when_replaced("job-2", "R", "e", f=7)

    assert story.summary() == text("""
        L
          a  500 rows
          b   10 rows  job-1
          c   20 rows  job-1
          d   30 rows
        R
          f  7 rows
        garbage
          e""")


def test_a_file_is_added_once() -> None:
    story = TableStory()
    files = story.new_files("all", a=1)
    story.when_committed(AddFiles(files))
    with pytest.raises(InvalidError, match="added once"):
        story.head.commit(story.transaction(AddFiles(files), base=1))


def test_a_file_has_one_reference_in_a_leaf() -> None:
    story = TableStory()
    (a,) = story.new_files("all", a=1)
    with pytest.raises(InvalidError, match="one reference in a leaf"):
        story.when_committed(AddFiles((a, a)))


def test_a_file_enters_a_leaf_once_though_its_references_name_a_partition_and_what_it_became() -> (
    None
):
    story = TableStory("L | m | R")
    (above,) = story.new_files("L", a=1)
    story.when_split("L", "L1 | d | L2")
    (below,) = story.new_files("L2", a=1)
    with pytest.raises(InvalidError, match="one reference in a leaf"):
        story.head.commit(story.transaction(AddFiles((above, below)), base=1))


def test_a_file_may_lie_in_many_leaves() -> None:
    story = TableStory("L | m | R")
    both = (*story.new_files("L", a=3), *story.new_files("R", a=4))
    story.when_committed(AddFiles(both))
    assert story.summary() == "L\n  a  3 rows\nR\n  a  4 rows"
    assert len(story.state.references_of(story.file("a"))) == 2


def test_keys_outside_of_the_partition_are_refused() -> None:
    story = TableStory("L | m | R")
    (a,) = story.new_files("L", a=1)
    for smallest, largest in (("m", "z"), ("n", "n")):
        wrong = msgspec.structs.replace(a, bounds=bounds(smallest, largest))
        with pytest.raises(InvalidError, match="outside its partition"):
            story.when_committed(AddFiles((wrong,)))


def test_a_checksum_of_64_bits_comes_back_as_it_was() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    ((reference, _),) = story.state.references(story.partitions["all"])
    assert reference.file == story.stored("a")
    assert reference.file.checksum >= 1 << 63


def test_a_claimed_file_is_never_claimed_again() -> None:
    story = TableStory()
    story.given_files("all", a=1, b=2)
    story.when_claimed("one", "all", "a")
    with pytest.raises(ConflictError, match=r"another job holds this file \(file=\w+ job=one\)"):
        story.when_claimed("two", "all", "a", "b")
    assert story.summary() == "all\n  a  1 rows  one\n  b  2 rows"


def test_a_file_that_is_not_there_is_not_claimed() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", a=1)
    with pytest.raises(ConflictError, match="the leaf does not hold this file"):
        story.when_claimed("one", "R", "a")


def test_a_job_claims_once_and_something() -> None:
    story = TableStory()
    story.given_files("all", a=1, b=2)
    story.when_claimed("one", "all", "a")
    with pytest.raises(InvalidError, match="claims once"):
        story.when_claimed("one", "all", "b")
    for inputs in ((), (story.file("b"),) * 2):
        claim = ClaimFiles(JobId("two"), story.partitions["all"], inputs)
        with pytest.raises(InvalidError, match="each once"):
            story.when_committed(claim)


def test_a_job_lives_in_the_state_with_its_claim() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    number = story.when_claimed("one", "all", "a")
    (job,) = story.state.jobs()
    assert (job.id, job.partition, job.number) == ("one", story.partitions["all"], number)
    assert job.at == story.state.head().at
    story.when_replaced("one", "all", "a")
    assert story.state.jobs() == []


def test_the_first_run_to_commit_wins_and_the_second_is_refused() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    story.when_claimed("one", "all", "a")
    story.when_replaced("one", "all", "a", b=1)
    with pytest.raises(ClaimLostError):
        story.when_replaced("one", "all", "a", c=1)
    assert story.summary() == "all\n  b  1 rows\ngarbage\n  a"


def test_a_claim_that_was_given_up_is_refused_and_its_files_are_free() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    story.when_claimed("one", "all", "a")
    story.when_given_up("one")
    with pytest.raises(ClaimLostError):
        story.when_given_up("one")
    story.when_claimed("two", "all", "a")
    with pytest.raises(ClaimLostError):
        story.when_replaced("one", "all", "a", b=1)
    assert story.summary() == "all\n  a  1 rows  two"


def test_a_job_replaces_exactly_what_it_holds() -> None:
    story = TableStory()
    story.given_files("all", a=1, b=2, c=3)
    story.when_claimed("one", "all", "a", "b")
    for inputs in (("a",), ("a", "b", "c"), ("a", "c")):
        with pytest.raises(ClaimLostError):
            story.when_replaced("one", "all", *inputs, d=3)


def test_an_output_enters_where_its_job_claimed() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", a=1)
    story.when_claimed("one", "L", "a")
    with pytest.raises(InvalidError, match="where it claimed"):
        story.when_replaced("one", "R", "a", d=1)
    (output,) = story.new_files("R", d=1)
    odd = ReplaceFiles(JobId("one"), story.partitions["L"], (story.file("a"),), output)
    with pytest.raises(InvalidError, match="where it claimed"):
        story.when_committed(odd)


def test_an_output_is_a_new_file_with_keys_inside() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", a=1, b=1)
    story.when_claimed("one", "L", "a")
    inputs = (story.file("a"),)
    (again,) = story.new_files("L", b=1)
    known = ReplaceFiles(JobId("one"), story.partitions["L"], inputs, again)
    with pytest.raises(InvalidError, match="added once"):
        story.head.commit(story.transaction(known, base=1))
    far = msgspec.structs.replace(story.new_files("L", c=1)[0], bounds=bounds("x", "z"))
    outside = story.transaction(ReplaceFiles(JobId("one"), story.partitions["L"], inputs, far))
    with pytest.raises(InvalidError, match="outside"):
        story.head.commit(outside)


def test_when_every_row_was_filtered_away_inputs_leave_and_nothing_enters() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    story.when_claimed("one", "all", "a")
    story.when_replaced("one", "all", "a")
    assert story.summary() == "all\ngarbage\n  a"


def test_a_file_is_garbage_when_its_last_reference_goes() -> None:
    story = TableStory("L | m | R")
    both = (*story.new_files("L", a=3), *story.new_files("R", a=4))
    story.when_committed(AddFiles(both))
    story.when_claimed("left", "L", "a")
    story.when_replaced("left", "L", "a", b=3)
    assert story.state.garbage() == []
    story.when_claimed("right", "R", "a")
    number = story.when_replaced("right", "R", "a", c=4)
    (garbage,) = story.state.garbage()
    assert (garbage.file, garbage.number) == (story.file("a"), number)
    assert garbage.size == story.stored("a").size


def test_garbage_that_was_not_removed_still_refuses_to_be_added() -> None:
    story = TableStory()
    files = story.new_files("all", a=1)
    story.when_committed(AddFiles(files))
    story.when_claimed("one", "all", "a")
    story.when_replaced("one", "all", "a")
    with pytest.raises(InvalidError, match="added once"):
        story.head.commit(story.transaction(AddFiles(files), base=1))


def test_garbage_is_removed_and_removing_again_does_nothing() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    story.when_claimed("one", "all", "a")
    story.when_replaced("one", "all", "a")
    story.when_garbage_is_removed("a")
    story.when_garbage_is_removed("a")
    assert story.summary() == "all"


def test_a_referenced_file_is_no_garbage() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    with pytest.raises(InvalidError, match="no garbage"):
        story.when_garbage_is_removed("a")


def test_garbage_is_listed_oldest_first_up_to_an_age_and_a_number() -> None:
    story = TableStory()
    for name in "abc":
        story.given_files("all", **{name: 1})
        story.when_claimed(f"job-{name}", "all", name)
        story.clock.advance(100)
        story.when_replaced(f"job-{name}", "all", name)
    listed = story.state.garbage()
    assert [g.file for g in listed] == [story.file(n) for n in "abc"]
    assert story.state.garbage(files_max=2) == listed[:2]
    assert story.state.garbage(before=listed[1].at) == listed[:2]


def test_leaf_figures_count_files_claims_rows_and_bytes_and_show_empty_leaves() -> None:
    story = TableStory("L | m | R")
    story.given_files("L", a=500, b=10)
    story.when_claimed("one", "L", "b")
    left, right = sorted(story.state.leaf_figures(), key=lambda f: -f.files)
    assert (left.files, left.claimed, left.rows, left.size) == (2, 1, 510, 2000)
    assert (right.partition, right.files, right.rows) == (story.partitions["R"], 0, 0)
    assert story.state.file_count(PartitionId(left.partition)) == 2
