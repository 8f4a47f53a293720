"""A split refuses nobody: references and claims move down, those of late commits too (H17, H18)."""

from textwrap import dedent

import pytest

from lakebed.errors import ClaimLostError, ConflictError, InvalidError
from lakebed.model.names import JobId, PartitionId
from lakebed.statestore.log_entries.file_changes import AddFiles, ReplaceFiles
from lakebed.statestore.log_entries.table_changes import MarkUnsplittable, Split
from lakebed.statestore.table_state.placing import own_key_range
from tests.dsl import TableStory, point


def text(picture: str) -> str:
    return dedent(picture).strip("\n")


def test_a_leaf_becomes_several_at_several_levels_at_once() -> None:
    story = TableStory("L | m | R")
    story.when_split("L", "A | c | B | f | C | i | D | k | E")
    tree = story.state.tree()

    def depth(name: str) -> int:
        above, node = 0, tree.nodes[story.partitions[name]]
        while node.parent is not None:
            above, node = above + 1, tree.nodes[node.parent]
        return above

    assert [depth(name) for name in "ABCDE"] == [4, 4, 3, 3, 3]
    ends = [own_key_range(story.state, story.partitions[n]) for n in "ABCDER"]
    assert [r.min for r in ends] == [b"", *map(point, "cfikm")]
    assert [r.max for r in ends] == [*map(point, "cfikm"), None]


def test_a_leaf_that_came_from_a_split_is_split_again() -> None:
    story = TableStory()
    story.given_files("all", a=80)
    story.when_split("all", "L | m | R")
    story.when_split("R", "R1 | t | R2")
    assert story.summary() == text("""
        L
          a  about 40 rows
        R1
          a  about 20 rows
        R2
          a  about 20 rows""")


def test_files_go_only_to_leaves_that_their_keys_reach_and_stay_exact_in_one() -> None:
    story = TableStory()
    story.given_files("all", keys=("a", "c"), low=10)
    story.given_files("all", keys=("b", "z"), wide=10)
    story.given_files("all", keys=("m", "z"), high=10)
    story.when_split("all", "L | m | R")
    assert story.summary() == text("""
        L
          low        10 rows
          wide  about 5 rows
        R
          high       10 rows
          wide  about 5 rows""")


def test_rows_are_shared_by_the_weights_of_the_split_and_none_is_lost_by_rounding() -> None:
    story = TableStory()
    story.given_files("all", a=100, b=10, c=5)
    story.when_split("all", "A | g | B | p | C", shares={"a": (1, 2, 3), "b": (0, 0, 0)})
    rows = {
        name: [
            next(
                r.rows
                for r, _ in story.state.references(story.partitions[leaf])
                if r.file.name == story.file(name)
            )
            for leaf in "ABC"
        ]
        for name in "abc"
    }
    assert rows == {"a": [16, 34, 50], "b": [3, 3, 4], "c": [1, 2, 2]}


def test_weights_of_leaves_that_a_file_does_not_reach_do_not_count() -> None:
    story = TableStory()
    story.given_files("all", keys=("h", "z"), a=10)
    story.when_split("all", "A | g | B | p | C", shares={"a": (98, 1, 1)})
    assert story.summary() == "A\nB\n  a  about 5 rows\nC\n  a  about 5 rows"


def test_claims_move_down_with_references() -> None:
    story = TableStory()
    story.given_files("all", a=10)
    story.when_claimed("one", "all", "a")
    story.when_split("all", "L | m | R")
    assert story.summary() == text("""
        L
          a  about 5 rows  one
        R
          a  about 5 rows  one""")
    with pytest.raises(ConflictError):
        story.when_claimed("two", "L", "a")
    story.when_given_up("one")
    story.when_claimed("two", "L", "a")
    assert "R\n  a  about 5 rows\n" in story.summary() + "\n"


def test_a_late_replacement_leaves_every_leaf_and_enters_those_its_keys_reach() -> None:
    story = TableStory()
    story.given_files("all", a=10)
    story.given_files("all", keys=("a", "b"), b=10)
    story.when_claimed("one", "all", "a", "b")
    (output,) = story.new_files("all", keys=("a", "c"), out=20)
    late = ReplaceFiles(JobId("one"), story.partitions["all"], tuple(map(story.file, "ab")), output)
    transaction = story.transaction(late)
    story.when_split("all", "L | g | M | p | R")
    story.head.commit(transaction)
    assert story.summary() == text("""
        L
          out  20 rows
        M
        R
        garbage
          a
          b""")


def test_a_late_replacement_without_its_claim_is_refused_and_not_passed_over() -> None:
    story = TableStory()
    story.given_files("all", a=10)
    story.when_claimed("one", "all", "a")
    (output,) = story.new_files("all", out=10)
    late = ReplaceFiles(JobId("one"), story.partitions["all"], (story.file("a"),), output)
    transaction = story.transaction(late)
    story.when_split("all", "L | m | R")
    story.when_given_up("one")
    with pytest.raises(ClaimLostError):
        story.head.commit(transaction)


def test_files_added_late_to_a_split_partition_enter_its_leaves() -> None:
    story = TableStory("X | x | Y")
    late = (
        *story.new_files("X", keys=("a", "w"), wide=9),
        *story.new_files("X", keys=("a", "b"), low=5),
    )
    transaction = story.transaction(AddFiles(late))
    story.when_split("X", "L | g | M | p | R")
    story.when_split("M", "M1 | j | M2")
    story.head.commit(transaction)
    assert story.summary() == text("""
        L
          low         5 rows
          wide  about 2 rows
        M1
          wide  about 2 rows
        M2
          wide  about 2 rows
        R
          wide  about 3 rows
        Y""")


def test_a_job_of_before_the_split_ends_in_a_second_split_too() -> None:
    story = TableStory()
    story.given_files("all", a=8)
    story.when_claimed("one", "all", "a")
    (output,) = story.new_files("all", out=8)
    late = ReplaceFiles(JobId("one"), story.partitions["all"], (story.file("a"),), output)
    transaction = story.transaction(late)
    story.when_split("all", "L | m | R")
    story.when_split("L", "L1 | d | L2")
    story.head.commit(transaction)
    assert story.state.jobs() == []
    assert story.summary() == text("""
        L1
          out  about 2 rows
        L2
          out  about 3 rows
        R
          out  about 3 rows
        garbage
          a""")


def test_bounds_reach_into_the_leaf_also_where_keys_differ_only_after_24_bytes() -> None:
    story = TableStory()
    same = "k" * 30
    story.given_files("all", keys=(same + "a", same + "z"), a=10)
    story.when_split("all", f"L | {same}m | R")
    for leaf in "LR":
        ((reference, _),) = story.state.references(story.partitions[leaf])
        key_range = own_key_range(story.state, story.partitions[leaf])
        assert key_range.overlaps(reference.bounds.as_range())
        assert len(reference.bounds.min) <= 24
        assert reference.bounds.max is not None
        assert len(reference.bounds.max) <= 24


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ((), "has no point"),
        ((point("c"), point("b")), "not in order"),
        ((point("c"), point("c")), "not in order"),
        ((point("m"),), "outside"),
        ((point("c"), point("z")), "outside"),
        ((b"",), "outside"),
        ((b"c",), "no key"),
        ((point("c") + b"\x80\x00\x00\x05",), "no key"),
    ],
)
def test_split_points_that_cannot_be_are_refused(points: tuple[bytes, ...], says: str) -> None:
    story = TableStory("L | m | R")
    with pytest.raises(InvalidError, match=says):
        story.when_committed(Split(story.partitions["L"], points))


def test_shares_that_do_not_fit_the_points_are_refused() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    for weights in ((1,), (1, 2, 3), (1, -1)):
        with pytest.raises(InvalidError, match="shares"):
            story.when_split("all", "L | m | R", shares={"a": weights})
    with pytest.raises(InvalidError, match="whole keys"):
        story.when_committed(Split(story.partitions["all"], (point("m"),), dimension=1))


def test_what_is_no_leaf_any_more_is_not_split_again() -> None:
    story = TableStory()
    story.when_split("all", "L | m | R")
    for change in (
        Split(story.partitions["all"], (point("c"),)),
        MarkUnsplittable(story.partitions["all"], 5),
    ):
        with pytest.raises(ConflictError, match="not a leaf"):
            story.when_committed(change)


def test_a_leaf_remembers_the_rows_at_which_it_could_not_be_split_until_it_is_split() -> None:
    story = TableStory()
    story.when_committed(MarkUnsplittable(story.partitions["all"], 1234))
    assert [f.rows_unsplittable for f in story.state.leaf_figures()] == [1234]
    story.when_split("all", "L | m | R")
    assert [f.rows_unsplittable for f in story.state.leaf_figures()] == [0, 0]


def test_a_split_that_was_refused_with_its_group_leaves_no_key_range_behind() -> None:
    story = TableStory()
    split = story.transaction(Split(story.partitions["all"], (point("m"),)))
    story.log.appends = [
        lambda: story.another_head().commit(
            story.transaction(Split(story.partitions["all"], (point("c"),)))
        )
    ]
    with pytest.raises(ConflictError):
        story.head.commit(split)
    leaves = list(story.state.tree().leaves())
    assert own_key_range(story.state, leaves[0]).max == point("c")


def test_a_partition_that_was_asked_for_too_early_has_its_own_key_range_later() -> None:
    story = TableStory()
    for id_ in range(1, 9):
        own_key_range(story.state, PartitionId(id_))
    story.when_split("all", "L | m | R")
    assert own_key_range(story.state, story.partitions["L"]).max == point("m")
    assert own_key_range(story.state, story.partitions["R"]).min == point("m")
