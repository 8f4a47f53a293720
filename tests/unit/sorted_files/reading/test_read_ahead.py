"""Reading ahead: what is asked for comes, in any order, and what is not asked for has a bound."""

import random
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from lakebed.errors import ObjectMissingError
from lakebed.ports.object_store import ObjectRanges
from lakebed.ports.sorted_files import ReadFigures
from lakebed.sorted_files.reading import read_ahead
from lakebed.sorted_files.reading.read_ahead import ReadAhead

BODY = random.Random(1).randbytes(40_000)
ASKED: list[ObjectRanges] = [(f"f{n % 3}", [(n * 1000, n * 1000 + 900)]) for n in range(40)]


class SlowObjects:
    """Each path has BODY. Counts what goes on at the same time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.bytes = self.now = self.most = 0
        self.missing = ""
        self._lock = threading.Lock()

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.bytes += sum(end - start for start, end in ranges)
        time.sleep(self.seconds)
        with self._lock:
            self.now -= 1
        if path == self.missing:
            raise ObjectMissingError(path)
        return [BODY[start:end] for start, end in ranges]

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        return [self.read(path, ranges) for path, ranges in wanted]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(read_ahead, "PIECE_BYTES", 256)
    yield
    threads = [t for t in threading.enumerate() if t.name.startswith("lakebed-ahead")]
    for thread in threads:
        thread.join(1)
        assert not thread.is_alive()


def ahead_of(
    objects: SlowObjects, expected: list[ObjectRanges], bytes_max: int = 5_000
) -> ReadAhead:
    return ReadAhead(objects, iter(expected), bytes_max=bytes_max, figures=ReadFigures())


def bodies(asked: ObjectRanges) -> list[bytes]:
    return [BODY[start:end] for start, end in asked[1]]


def test_the_bytes_asked_for_come_whatever_the_order() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        asked = [*ASKED, ASKED[3], ("f0", []), ("f1", [(0, 0), (5, 2_000), (7_000, 7_001)])]
        expected = [one for one in asked if rng.random() < 0.8]
        if seed % 2:
            rng.shuffle(asked)
        objects = SlowObjects()
        ahead = ahead_of(objects, expected)
        for one in asked:
            assert ahead.read(*one) == bodies(one)
        ahead.close()
        assert objects.bytes <= sum(len(b"".join(bodies(one))) for one in asked)


def test_requests_go_out_together_but_not_more_than_the_bound() -> None:
    objects = SlowObjects(0.002)
    ahead = ahead_of(objects, ASKED)
    assert ahead.read(*ASKED[0]) == bodies(ASKED[0])
    assert objects.bytes <= 900 + 5_000
    for one in ASKED[1:]:
        ahead.read(*one)
    ahead.close()
    assert 1 < objects.most <= read_ahead.CONNECTIONS


def test_who_stops_early_leaves_no_thread_and_no_request() -> None:
    objects = SlowObjects(0.01)
    ahead = ahead_of(objects, ASKED)
    ahead.read(*ASKED[0])
    ahead.close()
    sent = objects.bytes
    assert objects.now == 0
    time.sleep(0.03)
    assert objects.bytes == sent <= 900 + 5_000


def test_a_store_that_fails_is_heard_where_its_bytes_are_asked_for() -> None:
    objects = SlowObjects()
    objects.missing = "f1"
    ahead = ahead_of(objects, ASKED)
    assert ahead.read(*ASKED[0]) == bodies(ASKED[0])
    with pytest.raises(ObjectMissingError):
        ahead.read(*ASKED[1])
    assert ahead.read(*ASKED[2]) == bodies(ASKED[2])
    ahead.close()
