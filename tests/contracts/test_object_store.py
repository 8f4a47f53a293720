"""What every object store keeps: objects are put if absent, and whole (H19)."""

import threading

import anycrc
import pytest

from lakebed.errors import CorruptError, InvalidError, ObjectExistsError, ObjectMissingError
from lakebed.ports.object_store import ObjectFacts, ObjectStore
from tests.contracts.conftest import Objects


@pytest.fixture
def store(objects: Objects) -> ObjectStore:
    return objects()


def put(store: ObjectStore, path: str, body: bytes = b"body") -> ObjectFacts:
    writer = store.create(path)
    writer.write(body)
    return writer.finish()


def checksum(body: bytes) -> int:
    return int(anycrc.Model("CRC64-NVME").calc(body))


def test_an_object_is_read_by_ranges_by_anyone(objects: Objects) -> None:
    facts = put(objects(), "a/b", b"0123456789")
    assert facts == ObjectFacts("a/b", 10, checksum(b"0123456789"))
    other = objects()
    ranges = [(0, 10), (2, 4), (9, 10), (5, 5), (2, 4)]
    assert other.read("a/b", ranges) == [b"0123456789", b"23", b"9", b"", b"23"]
    assert other.read("a/b", []) == []
    assert other.look("a/b") == facts


def test_the_checksum_is_crc_64_nvme(store: ObjectStore) -> None:
    assert put(store, "a", b"123456789").checksum == 0xAE8B14860A799888


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 5_000_000])
def test_objects_of_any_size_come_back_whole(store: ObjectStore, size: int) -> None:
    body = bytes(n % 251 for n in range(1000)) * (size // 1000 + 1)
    body = body[:size]
    assert put(store, "a", body) == store.look("a") == ObjectFacts("a", size, checksum(body))
    assert store.read("a", [(0, size)]) == [body]


def test_pieces_and_views_are_put_together(store: ObjectStore) -> None:
    writer = store.create("a")
    assert writer.write(b"abc") == 3
    assert writer.write(memoryview(b"xdefx")[1:4]) == 3
    assert writer.write(b"") == 0
    assert writer.finish() == ObjectFacts("a", 6, checksum(b"abcdef"))
    assert store.read("a", [(0, 6)]) == [b"abcdef"]


def test_an_object_that_is_not_there_is_missing(store: ObjectStore) -> None:
    put(store, "a/b")
    for path in ("x", "a", "a/c", "a/b/c", "x/y/z"):
        assert store.look(path) is None
        with pytest.raises(ObjectMissingError):
            store.read(path, [(0, 1)])


def test_the_size_is_told_without_reading(store: ObjectStore) -> None:
    put(store, "a/b", b"0123456789")
    assert store.size_of("a/b") == 10
    for path in ("x", "a", "a/c", "a/b/c"):
        assert store.size_of(path) is None


def test_many_objects_are_read_by_one_call(store: ObjectStore) -> None:
    bodies = {f"a/{n}": bytes((n + at) % 251 for at in range(5_000)) for n in range(40)}
    for path, body in bodies.items():
        put(store, path, body)
    ranges = [(0, 5_000), (7, 7), (4_999, 5_000), *((at, at + 3) for at in range(0, 4_900, 250))]
    wanted = [(path, ranges[: 1 + place % 23]) for place, path in enumerate([*bodies, "a/3"])]
    wanted.append(("a/5", []))
    found = store.read_many(wanted)
    assert found == [[bodies[path][start:end] for start, end in asked] for path, asked in wanted]
    assert store.read_many([]) == []


def test_one_bad_object_fails_the_whole_call(store: ObjectStore) -> None:
    put(store, "a", b"0123")
    put(store, "b", b"0123")
    with pytest.raises(ObjectMissingError, match="path=x"):
        store.read_many([("a", [(0, 1)]), ("x", [(0, 1)]), ("b", [(0, 1)])])
    with pytest.raises(ObjectMissingError, match="path=x"):
        store.read_many([("a", [(0, 1)]), ("x", [(0, 0)])])
    with pytest.raises(CorruptError):
        store.read_many([("a", [(0, 4)]), ("b", [(2, 5)])])


def test_a_range_beyond_the_end_is_corruption_not_fewer_bytes(store: ObjectStore) -> None:
    put(store, "a", b"0123")
    for wanted in ((0, 5), (4, 5), (7, 9)):
        with pytest.raises(CorruptError):
            store.read("a", [wanted])


def test_an_object_is_never_overwritten(store: ObjectStore) -> None:
    put(store, "a", b"first")
    for body in (b"second", b"first"):
        with pytest.raises(ObjectExistsError):
            put(store, "a", body)
    assert store.read("a", [(0, 5)]) == [b"first"]
    assert list(store.list("")) == ["a"]


def test_nothing_is_visible_before_the_end(store: ObjectStore) -> None:
    writer = store.create("a/b")
    writer.write(b"x" * 3_000_000)
    assert store.look("a/b") is None
    assert list(store.list("")) == []
    writer.finish()
    assert list(store.list("")) == ["a/b"]


def test_of_two_writers_the_first_to_finish_wins(store: ObjectStore) -> None:
    first, second = store.create("a"), store.create("a")
    first.write(b"first")
    second.write(b"second")
    second.finish()
    with pytest.raises(ObjectExistsError):
        first.finish()
    assert store.read("a", [(0, 6)]) == [b"second"]


def test_what_is_given_up_leaves_nothing(store: ObjectStore) -> None:
    writer = store.create("a")
    writer.write(b"x")
    writer.abort()
    writer.abort()
    assert list(store.list("")) == []
    assert store.abort_unfinished(older_than_seconds=-1) == 0
    put(store, "a")


def test_giving_up_after_the_end_does_nothing(store: ObjectStore) -> None:
    writer = store.create("a")
    writer.finish()
    writer.abort()
    assert store.look("a") is not None


PATHS = [
    "a!",
    "a-b",
    "a/b",
    "a/b-c/d",
    "a/b/c",
    "a/b0",
    "a0",
    "aa/a",
    "b",
    "z/ü",
    "é",
    "\uffee",
    "\U00010000",
]


@pytest.fixture
def listed(store: ObjectStore) -> ObjectStore:
    for path in PATHS:
        if path != "a/b":  # a file system cannot keep it beside a/b/c
            put(store, path)
    return store


def test_paths_are_listed_by_code_points_of_the_whole_path(listed: ObjectStore) -> None:
    paths = list(listed.list(""))
    assert paths == sorted(set(PATHS) - {"a/b"})
    assert paths[:5] == ["a!", "a-b", "a/b-c/d", "a/b/c", "a/b0"]


@pytest.mark.parametrize("prefix", ["a", "a/", "a/b", "a/b/", "a/b/c", "a/b/c/", "x", "z/", "aa/a"])
@pytest.mark.parametrize("below", [None, "", "a", "a/b/", "a/b/c", "a/b/d", "a0", "b", "zz"])
def test_prefix_and_below_choose_paths(listed: ObjectStore, prefix: str, below: str | None) -> None:
    wanted = [
        path
        for path in sorted(set(PATHS) - {"a/b"})
        if path.startswith(prefix) and (below is None or path < below)
    ]
    assert list(listed.list(prefix, below=below)) == wanted


@pytest.mark.parametrize("prefix", ["/", "..", "../", "./", "a//", "\x00", "a/../", "\x00/"])
def test_where_nothing_can_lie_nothing_is_listed(listed: ObjectStore, prefix: str) -> None:
    assert list(listed.list(prefix)) == []


LONG = ["x" * 256, "ü" * 128, "/".join(["x" * 200] * 6)]
ODD = ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.", "a\x00b", "\ud800"]


@pytest.mark.parametrize("path", [*ODD, *LONG], ids=repr)
def test_odd_paths_are_refused(store: ObjectStore, path: str) -> None:
    with pytest.raises(InvalidError):
        store.create(path)
    with pytest.raises(InvalidError):
        store.look(path)
    with pytest.raises(InvalidError):
        store.read(path, [(0, 1)])
    with pytest.raises(InvalidError):
        store.delete([path])


@pytest.mark.parametrize("path", ["a b", "%2e%2e", "a\\b", "..a", "a..", ".a", "ü/é", "x" * 255])
def test_unusual_paths_are_kept(store: ObjectStore, path: str) -> None:
    put(store, path)
    assert list(store.list("")) == [path]


def test_deleting_may_be_repeated_and_spares_others(objects: Objects) -> None:
    store = objects()
    for path in ("a/1", "a/2", "a/3"):
        put(store, path)
    store.delete(["a/1", "missing", "not/there", "a/3", "a/1", "a", "a/2/x"])
    store.delete(["a/1"])
    store.delete([])
    assert list(objects().list("")) == ["a/2"]
    assert store.look("a/1") is None


def test_threads_that_race_for_a_path_have_one_winner(objects: Objects) -> None:
    won: list[bytes] = []
    start = threading.Barrier(4)

    def work(store: ObjectStore, body: bytes) -> None:
        for n in range(20):
            writer = store.create(f"new/{n}/x")
            writer.write(body)
            start.wait()
            try:
                writer.finish()
            except ObjectExistsError:
                continue
            won.append(b"%d %s" % (n, body))

    threads = [threading.Thread(target=work, args=(objects(), b"writer %d" % n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = objects()
    bodies = [b"%d %s" % (n, store.read(f"new/{n}/x", [(0, 8)])[0]) for n in range(20)]
    assert sorted(won) == sorted(bodies)
