"""Objects as items: which are taken, which wait, and where a pass goes on."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.backends.memory import VirtualClock
from lakebed.decoding.listed_objects import (
    ListedObjectReader,
    ListedObjects,
    ObjectSettings,
    item_of,
    passed_before,
)
from lakebed.errors import DeniedError, InvalidError, UnavailableError, UnreadableInputError
from lakebed.model.names import Micros
from lakebed.ports.record_source import Records
from lakebed.ports.source_files import SourceFile

Opened = Callable[..., ListedObjectReader]


class Listed(LocalSourceFiles):
    """Files with times that a test says. modified: by name."""

    def __init__(self) -> None:
        self.modified: dict[str, int] = {}
        self.before_reading: Callable[[], None] = lambda: None

    def find(self, name: str) -> list[SourceFile]:
        found = super().find(name)
        times = (self.modified.get(Path(file.name).name, 1) for file in found)
        return [
            SourceFile(file.name, file.size, file.version, time * 1_000_000)
            for file, time in zip(found, times, strict=True)
        ]

    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> AbstractContextManager[Path]:
        self.before_reading()
        return super().on_disk(file, spans)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def files() -> Listed:
    return Listed()


@pytest.fixture
def opened(tmp_path: Path, clock: VirtualClock, files: Listed) -> Opened:
    def open_(
        *,
        begin: int = 0,
        resume: bytes = b"",
        known: tuple[bytes, ...] = (),
        news: Callable[[], int] = lambda: 0,
        **settings: object,
    ) -> ListedObjectReader:
        given = ObjectSettings(folder=str(tmp_path), **settings)
        source = ListedObjects(files, given, clock=clock, is_taken=known.__contains__, news=news)
        (split,) = source.splits()
        return source.open(split, begin, resume=resume)

    return open_


def read(
    reader: ListedObjectReader, bytes_max: int = 1 << 20, wait_seconds: float = 0.0
) -> list[bytes]:
    records = reader.read(bytes_max=bytes_max, wait_seconds=wait_seconds)
    return [] if records is None else records.batch["value"].to_pylist()


def some(reader: ListedObjectReader, bytes_max: int = 1 << 20) -> Records[Any]:
    records = reader.read(bytes_max=bytes_max)
    assert records is not None
    return records


def test_lines_of_objects_come_with_counts_and_no_object_is_divided(
    tmp_path: Path, opened: Opened
) -> None:
    (tmp_path / "a").write_bytes(b"1\n\n3")
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(b"4\n")
    reader = opened(begin=10)
    first = some(reader, bytes_max=1)
    assert (first.begin, first.end, first.item_counts) == (10, 13, (3,))
    assert first.batch["value"].to_pylist() == [b"1", b"", b"3"]
    assert first.batch["position"].to_pylist() == [10, 11, 12]
    assert read(reader) == [b"4"]
    assert read(reader) == []
    both = some(opened())
    assert (both.item_counts, len(both.items)) == ((3, 1), 2)


def test_a_whole_object_is_one_record_and_its_name_is_the_key(
    tmp_path: Path, opened: Opened
) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n")
    (tmp_path / "b").write_bytes(b"")
    records = some(opened(records="whole"))
    assert records.batch["value"].to_pylist() == [b"1\n2\n", b""]
    keys = records.batch["key"].to_pylist()
    assert keys == [str(tmp_path / name).encode() for name in "ab"]


def test_a_pass_goes_on_in_another_process_and_the_next_one_finds_what_lies_before(
    tmp_path: Path, opened: Opened, files: Listed
) -> None:
    """The next one would pass over what the pass has not come to: it is old."""
    files.modified |= {"a": 100_000, "b": 100_000, "c": 7, "d": 100_000}
    for name in "bcd":
        (tmp_path / name).write_bytes(name.encode())
    first = some(opened(once_seconds=60), bytes_max=1)
    assert first.items == some(opened(), bytes_max=1).items
    (tmp_path / "a").write_bytes(b"late")
    known = first.items
    reader = opened(begin=1, resume=first.resume, known=known, list_seconds=5, once_seconds=60)
    assert read(reader) == [b"c", b"d"]
    assert read(reader) == []
    assert read(reader, wait_seconds=5) == [b"late"]
    assert read(reader, wait_seconds=20) == []
    done = opened(begin=3, resume=b"", known=first.items)
    assert read(done) == [b"late", b"c", b"d"]


def test_a_reader_with_nothing_old_behind_its_cursor_begins_a_pass_at_once(
    tmp_path: Path, opened: Opened
) -> None:
    """So a process that begins anew for each object, where names rise, ends passes, too."""
    (tmp_path / "b").write_bytes(b"b")
    first = some(opened())
    (tmp_path / "a").write_bytes(b"late")
    (tmp_path / "c").write_bytes(b"c")
    second = some(opened(begin=1, resume=first.resume, known=first.items, once_seconds=60))
    assert second.batch["value"].to_pylist() == [b"late", b"c"]
    assert passed_before(first.resume, 1) == 0
    assert passed_before(second.resume, 0) == 1_000_000


def test_a_reader_with_nothing_behind_its_cursor_begins_a_pass_at_once(
    tmp_path: Path, opened: Opened
) -> None:
    (tmp_path / "b").write_bytes(b"b")
    first = some(opened())
    (tmp_path / "a").write_bytes(b"late")
    assert read(opened(begin=1, resume=first.resume, known=first.items)) == [b"late"]


def test_an_object_that_is_written_again_is_another_item(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "a").write_bytes(b"one")
    reader = opened(list_seconds=1)
    before = some(reader).items
    (tmp_path / "a").write_bytes(b"two")
    os.utime(tmp_path / "a", (5, 5))
    records = reader.read(bytes_max=1, wait_seconds=2)
    assert records is not None
    assert records.items != before
    assert records.batch["value"].to_pylist() == [b"two"]


def test_an_object_that_changes_while_it_is_read_comes_with_the_next_pass(
    tmp_path: Path, opened: Opened, files: Listed
) -> None:
    (tmp_path / "a").write_bytes(b"one")

    def change() -> None:
        files.before_reading = lambda: None
        (tmp_path / "a").write_bytes(b"other")

    files.before_reading = change
    reader = opened(list_seconds=1)
    assert read(reader) == []
    assert read(reader, wait_seconds=2) == [b"other"]


def test_an_object_that_cannot_be_read_is_told_the_second_time(
    tmp_path: Path, opened: Opened, files: Listed
) -> None:
    (tmp_path / "a").write_bytes(b"one")

    def refuse() -> None:
        raise UnreadableInputError("cannot read a file")

    files.before_reading = refuse
    reader = opened(list_seconds=1)
    assert read(reader) == []
    with pytest.raises(UnreadableInputError):
        read(reader, wait_seconds=2)


def test_what_is_still_written_waits_until_it_has_settled(
    tmp_path: Path, opened: Opened, files: Listed, clock: VirtualClock
) -> None:
    (tmp_path / "a").write_bytes(b"one")
    files.modified["a"] = clock.now() // 1_000_000
    reader = opened(settle_seconds=10, list_seconds=1)
    assert read(reader) == []
    assert read(reader, wait_seconds=5) == []
    assert read(reader, wait_seconds=15) == [b"one"]


def test_what_was_there_long_before_an_earlier_pass_is_not_taken_again(
    tmp_path: Path, opened: Opened, files: Listed
) -> None:
    """A table forgets items after a while; objects stay."""
    files.modified |= {"a": 1_000, "b": 100_000, "c": 100_030, "d": 100_020}
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
    first = some(opened(once_seconds=60))
    (tmp_path / "d").write_bytes(b"d")
    again = {"resume": first.resume, "known": first.items, "once_seconds": 60}
    assert read(opened(**again)) == [b"d"]
    resume = some(opened(**again)).resume
    assert read(opened(resume=resume, once_seconds=60)) == [b"b", b"c", b"d"]  # known items, all


def test_what_no_reader_will_give_is_known_by_its_cursor(
    tmp_path: Path, opened: Opened, files: Listed
) -> None:
    """It is no later than what a reader passes over that goes on there, with the same setting."""
    assert passed_before(b"", 60) == 0
    files.modified |= {"a": 1_000, "b": 100_000, "0": 200_000}
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    first = some(opened(once_seconds=3_600))
    assert passed_before(first.resume, 60) == 0, "its listing was not taken to its end"
    (tmp_path / "0").write_bytes(b"0")
    known = first.items
    second = some(opened(resume=first.resume, known=known, once_seconds=3_600))
    assert passed_before(second.resume, 3_600) == (100_000 - 3_600) * 1_000_000
    assert passed_before(second.resume, 60) == (100_000 - 60) * 1_000_000
    assert passed_before(second.resume, 7_200) == (100_000 - 3_600) * 1_000_000
    files.modified |= {"d": 99_900, "e": 99_950}
    (tmp_path / "d").write_bytes(b"d")
    (tmp_path / "e").write_bytes(b"e")
    assert read(opened(resume=second.resume, known=known, once_seconds=60)) == [b"e"]
    assert read(opened(resume=second.resume, known=known, once_seconds=3_600)) == [b"d", b"e"]


def test_an_object_beyond_the_bound_is_refused(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    with pytest.raises(InvalidError, match=r"an object is too large .*bytes=100.*bulk import"):
        read(opened(object_bytes_max=99))


def test_an_empty_folder_has_no_record_and_one_that_is_refused_or_too_large_says_so(
    opened: Opened, files: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(opened()) == []
    facts: dict[str, object] = {"permission": "s3:ListBucket", "why": "403"}

    def refuse(_: str) -> list[SourceFile]:
        raise InvalidError("may not be read", **facts)

    monkeypatch.setattr(files, "find", refuse)
    with pytest.raises(DeniedError, match="s3:ListBucket"):
        read(opened())
    facts = {"files_max": 9}
    with pytest.raises(InvalidError, match="files_max=9"):
        read(opened())


def test_names_that_no_pattern_matches_are_left_alone(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.log", "in/b.log", "in/c.txt"):
        (tmp_path / name).write_bytes(name.encode())
    assert read(opened(pattern="*.log")) == [b"a.log", b"in/b.log"]
    assert read(opened(pattern="in/*")) == [b"in/b.log", b"in/c.txt"]


def test_in_the_order_of_names_no_item_is_kept_and_the_position_says_all(
    tmp_path: Path, opened: Opened
) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
    first = some(opened(order="name"), bytes_max=1)
    assert (first.items, first.item_counts, first.end) == ((), (), 1)
    (tmp_path / "0").write_bytes(b"too late")
    (tmp_path / "d").write_bytes(b"d")
    again = [read(opened(order="name", begin=1, resume=first.resume)) for _ in range(2)]
    assert again == [[b"b", b"c", b"d"]] * 2


def test_in_the_order_of_names_nothing_comes_before_what_has_not_settled(
    tmp_path: Path, opened: Opened, files: Listed, clock: VirtualClock
) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
    files.modified["b"] = clock.now() // 1_000_000
    reader = opened(order="name", settle_seconds=10, list_seconds=1)
    assert read(reader) == [b"a"]
    assert read(reader, wait_seconds=5) == []
    assert read(reader, wait_seconds=10) == [b"b", b"c"]


def test_in_the_order_of_names_an_object_that_changes_holds_back_those_behind_it(
    tmp_path: Path, opened: Opened, files: Listed
) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(name.encode())

    def change() -> None:
        files.before_reading = lambda: None
        (tmp_path / "a").write_bytes(b"other")

    files.before_reading = change
    reader = opened(order="name", list_seconds=1)
    assert read(reader) == []
    assert read(reader, wait_seconds=2) == [b"other", b"b"]


def test_parts_share_objects_out_by_their_names(tmp_path: Path, files: Listed) -> None:
    for number in range(20):
        (tmp_path / f"{number}").write_bytes(b"%d" % number)
    settings = ObjectSettings(folder=str(tmp_path), parts=3)
    source = ListedObjects(files, settings, clock=VirtualClock())
    shares = [read(source.open(split, 0)) for split in source.splits()]
    assert all(shares)
    assert sorted(int(each) for share in shares for each in share) == list(range(20))
    whole = ListedObjects(files, ObjectSettings(folder=str(tmp_path)), clock=VirtualClock())
    with pytest.raises(InvalidError, match="not a source split of this folder"):
        whole.open(source.splits()[1], 0)


def test_what_was_read_before_an_error_comes_and_the_error_after_it(
    tmp_path: Path, opened: Opened, files: Listed
) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
    tries = iter([None, UnavailableError("busy"), UnavailableError("busy"), None, None])

    def fail() -> None:
        if (error := next(tries)) is not None:
            raise error

    files.before_reading = fail
    reader = opened()
    assert read(reader) == [b"a"]
    with pytest.raises(UnavailableError):
        read(reader)
    assert read(reader) == [b"b", b"c"]


def test_items_differ_by_name_and_by_version() -> None:
    items = {item_of(SourceFile(name, 1, version)) for name in ("a", "b") for version in ("1", "2")}
    assert {len(item) for item in items} == {16}
    assert len(items) == 4
    assert item_of(SourceFile("a", 1, "1")) == item_of(SourceFile("a", 2, "1", Micros(7)))


def test_what_a_notice_announces_comes_before_the_next_listing(
    tmp_path: Path, opened: Opened
) -> None:
    came = 3
    reader = opened(list_seconds=3_600, news=lambda: came)
    (tmp_path / "a").write_bytes(b"a")
    assert read(reader) == [b"a"]
    assert read(reader) == [], "what was said before it began says nothing new"
    (tmp_path / "b").write_bytes(b"b")
    assert read(reader) == [], "nothing was said since"
    came += 1
    assert read(reader) == [b"b"]
    (tmp_path / "c").write_bytes(b"c")
    assert read(reader) == []
    assert read(reader, wait_seconds=3_600) == [b"c"], "a listing is the truth"


@pytest.mark.parametrize("order", ["name", "any"])
def test_what_a_notice_announced_comes_when_it_has_settled(
    tmp_path: Path, opened: Opened, files: Listed, clock: VirtualClock, order: str
) -> None:
    came = 0
    reader = opened(order=order, list_seconds=3_600, settle_seconds=60, news=lambda: came)
    assert read(reader) == []
    (tmp_path / "a").write_bytes(b"a")
    files.modified["a"] = clock.now() // 1_000_000
    came += 1
    assert read(reader) == [], "it has just been written"
    clock.advance(59)
    assert read(reader) == []
    clock.advance(2)
    assert read(reader) == [b"a"]
    (tmp_path / "b").write_bytes(b"b")
    clock.advance(3_000)
    assert read(reader) == [], "nothing was said of this one"
