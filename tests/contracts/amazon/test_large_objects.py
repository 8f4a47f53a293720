"""Objects that are uploaded in parts, when requests are lost, refused or never answered (H2, H25).

What S3 does and MiniStack does not is told by the proxy in its place: an upload that is completed
is unknown afterwards, a conflict ends an upload, the answer 200 may hold an error.
"""

from contextlib import suppress

import pytest

from lakebed.backends.aws import Patience, S3ObjectStore
from lakebed.backends.aws.large_objects import BYTES_AT_ONCE, PARTS_MAX, part_bytes
from lakebed.backends.aws.object_store import UploadSizes
from lakebed.backends.memory import VirtualClock
from lakebed.errors import (
    DeniedError,
    LakebedError,
    ObjectExistsError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.sorted_files.format.object_sink import finish_object
from tests.contracts.amazon.test_s3_objects import facts, put, uploads
from tests.servers.faulty_proxy import FLIPPED, LOST, UNANSWERED, Answer, Fault, FaultyProxy
from tests.servers.s3 import S3Server

BUSY = Answer(503, "SlowDown")
TAKEN = Answer(412, "PreconditionFailed")
CONFLICT = Answer(409, "ConditionalRequestConflict")
NO_UPLOAD = Answer(404, "NoSuchUpload")
BROKEN = Answer(500, "InternalError")
BROKEN_WITHIN = Answer(200, "InternalError")
"""S3 answers 200 before it has put parts together, and then tells the error in the body."""
ALWAYS = 1_000
LARGE = b"0123456789" * 100
REQUESTS = 6
"""Of LARGE: the beginning, four parts, the end."""
END = "/a?uploadId"


@pytest.fixture
def prefix(ministack: S3Server) -> str:
    return ministack.new_prefix()


@pytest.fixture
def store(ministack: S3Server, proxy: FaultyProxy, prefix: str) -> S3ObjectStore:
    """What waits, waits in virtual time."""
    return ministack.store(
        prefix,
        url=proxy.url,
        clock=VirtualClock(),
        patience=Patience(),
        single_bytes_max=100,
        part_bytes_min=300,
    )


def script(proxy: FaultyProxy, method: str, target: str, *faults: Fault) -> None:
    """Let one request after the other of a kind meet these faults."""
    left = iter(faults)
    proxy.rule = lambda asked, where: (
        next(left, None) if asked == method and target in where else None
    )


def file_written(store: S3ObjectStore, body: bytes = LARGE) -> None:
    """Write as who writes a file does: what a lost answer meant is found out."""
    writer = store.create("a")
    writer.write(body)
    told = facts("a", body)
    finish_object(store, writer, path="a", size=told.size, checksum=told.checksum)


@pytest.mark.parametrize(
    ("method", "target"), [("POST", "/a?uploads"), ("PUT", "/a?uploadId"), ("POST", END)]
)
@pytest.mark.parametrize("fault", [BUSY, LOST, UNANSWERED, BROKEN], ids=str)
def test_each_step_of_a_large_upload_is_repeated(
    store: S3ObjectStore, proxy: FaultyProxy, method: str, target: str, fault: Fault
) -> None:
    script(proxy, method, target, fault)
    assert put(store, "a", LARGE) == facts("a", LARGE) == store.look("a")


@pytest.mark.parametrize("last", [(n, arrives) for n in range(REQUESTS) for arrives in (0, 1)])
def test_a_writer_that_dies_at_any_request_shows_all_or_nothing_and_its_next_run_succeeds(
    ministack: S3Server,
    store: S3ObjectStore,
    proxy: FaultyProxy,
    prefix: str,
    last: tuple[int, int],
) -> None:
    step, arrives = last

    def dies(_method: str, _target: str) -> Fault:
        count = len(proxy.seen) - 1
        if count < step:
            return None
        return UNANSWERED if arrives and count == step else LOST

    proxy.rule = dies
    with pytest.raises((UnavailableError, UnknownOutcomeError)):
        put(store, "a", LARGE)
    other = ministack.store(prefix, single_bytes_max=100, part_bytes_min=300)
    is_done = (step, arrives) == (REQUESTS - 1, 1)
    assert other.look("a") == (facts("a", LARGE) if is_done else None)
    file_written(other)
    assert other.look("a") == facts("a", LARGE)


@pytest.mark.parametrize(
    "then",
    [pytest.param(TAKEN, id="412"), pytest.param(NO_UPLOAD, id="404"), pytest.param(LOST, id="-")],
)
def test_an_end_whose_answer_was_lost_is_recognised_as_ones_own(
    store: S3ObjectStore, proxy: FaultyProxy, then: Fault
) -> None:
    """S3 knows no upload that was completed, or says that the key is taken: by us."""
    script(proxy, "POST", END, UNANSWERED, *[then] * 10)
    file_written(store)
    assert store.look("a") == facts("a", LARGE)


def test_an_end_that_is_never_answered_has_an_unknown_outcome(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    for fault in (LOST, BROKEN, BROKEN_WITHIN):
        proxy.times(ALWAYS, "POST", fault, END)
        with pytest.raises(UnknownOutcomeError):
            put(store, "a", LARGE)
        assert store.look("a") is None


def test_an_error_inside_an_answer_of_success_is_an_error(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    script(proxy, "POST", END, BROKEN_WITHIN, BROKEN_WITHIN)
    assert put(store, "a", LARGE) == store.look("a")
    assert sum(END in target and method == "POST" for method, target in proxy.seen) == 3


def test_a_conflict_is_waited_for_and_not_taken_for_an_object(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    script(proxy, "POST", END, CONFLICT, CONFLICT)
    assert put(store, "a", LARGE) == facts("a", LARGE)


def test_a_conflict_that_ended_the_upload_is_written_again(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    script(proxy, "POST", END, CONFLICT, NO_UPLOAD)
    with pytest.raises(UnavailableError, match="the upload was removed"):
        put(store, "a", LARGE)
    assert store.look("a") is None
    file_written(store)


def test_conflicts_without_end_show_nothing(
    store: S3ObjectStore, proxy: FaultyProxy, ministack: S3Server, prefix: str
) -> None:
    proxy.times(ALWAYS, "POST", CONFLICT, END)
    with pytest.raises(UnavailableError, match="409"):
        put(store, "a", LARGE)
    assert store.look("a") is None
    assert uploads(ministack, prefix) == []


def test_a_key_that_another_object_has_is_taken(store: S3ObjectStore, proxy: FaultyProxy) -> None:
    put(store, "a", b"another")
    with pytest.raises(ObjectExistsError):
        file_written(store)
    assert store.read("a", [(0, 7)]) == [b"another"]


def test_a_part_that_arrived_twice_and_got_another_tag_is_no_bad_request(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    """With a key of KMS a part's ETag is another each time, and the older request may come last."""
    proxy.times(ALWAYS, "POST", Answer(400, "InvalidPart"), END)
    with pytest.raises(UnavailableError, match="InvalidPart"):
        put(store, "a", LARGE)


@pytest.mark.parametrize("step", [("POST", "/a?uploads"), ("PUT", "/a?uploadId")])
def test_a_permission_that_lacks_is_told_and_nothing_is_left(
    store: S3ObjectStore,
    proxy: FaultyProxy,
    ministack: S3Server,
    prefix: str,
    step: tuple[str, str],
) -> None:
    method, target = step
    proxy.times(ALWAYS, method, Answer(403, "AccessDenied"), target)
    with pytest.raises(DeniedError, match="s3:PutObject"):
        put(store, "a", LARGE)
    assert list(store.list("")) == []
    assert uploads(ministack, prefix) == []


def test_damaged_parts_are_sent_again(store: S3ObjectStore, proxy: FaultyProxy) -> None:
    script(proxy, "PUT", "/a?uploadId", FLIPPED)
    assert put(store, "a", LARGE) == store.look("a")


def test_a_store_that_cannot_forget_an_upload_is_not_waited_for_for_ever(
    store: S3ObjectStore, proxy: FaultyProxy
) -> None:
    proxy.times(ALWAYS, "DELETE", LOST)
    writer = store.create("a")
    writer.write(LARGE)
    writer.abort()
    with suppress(LakebedError):
        writer.abort()
    assert list(store.list("")) == []


def test_parts_grow_so_that_10000_hold_five_tebibytes() -> None:
    sizes = UploadSizes()
    sent, parts = 0, []
    while sent < sizes.object_bytes_max:
        parts.append(part_bytes(sent, sizes.part_bytes_min))
        sent += parts[-1]
    assert len(parts) <= PARTS_MAX
    assert min(parts) >= 5 << 20, "S3 takes no smaller ones"
    assert max(parts) <= 5 << 30, "nor larger ones"
    assert part_bytes(300 << 30, sizes.part_bytes_min) < BYTES_AT_ONCE
