"""Internal messages that a newer release sent: added fields are ignored, needed ones refuse."""

import json
from collections.abc import Callable

import msgspec
import pytest

from lakebed.config.messages import ingest_message
from lakebed.errors import InvalidError, NewerFormatError
from lakebed.model.jobs import (
    BatchMessage,
    CompactionMessage,
    TableMessage,
    batch_message_in,
    decode_message,
    decode_table_message,
    encode_batch_message,
    encode_message,
    encode_table_message,
)
from lakebed.model.names import JobId, TableId, TableName
from lakebed.statestore.queued_commits import (
    MESSAGE_FORMAT,
    CommitRequester,
    CommitsMessage,
    decode_commits,
    encode_commits,
)

COMPACTION = CompactionMessage(TableId("1a"), JobId("j"))
TICK = TableMessage(TableId("1a"))
BATCH = BatchMessage(id=JobId("j"), table=TableName("trips"), table_id=TableId("1a" * 16), batch=7)
COMMITS = CommitsMessage(TableId("1a"), (CommitRequester("ingest", JobId("j"), "run-1", 5, 0.5),))
KINDS: list[tuple[object, bytes, Callable[[bytes], object]]] = [
    (COMPACTION, encode_message(COMPACTION), decode_message),
    (TICK, encode_table_message(TICK), decode_table_message),
    (BATCH, encode_batch_message(BATCH), batch_message_in),
]


@pytest.mark.parametrize(("message", "body", "decode"), KINDS)
def test_fields_that_a_newer_release_added_are_ignored(
    message: object, body: bytes, decode: Callable[[bytes], object]
) -> None:
    more = json.dumps(json.loads(body) | {"since": [1, {"a": None}], "needs": 1}).encode()
    assert decode(more) == message


@pytest.mark.parametrize(("message", "body", "decode"), KINDS)
def test_a_message_that_needs_a_newer_release_is_not_invalid(
    message: object, body: bytes, decode: Callable[[bytes], object]
) -> None:
    another = {name: {"of": "another form"} for name in json.loads(body)}
    changed = another | {"needs": 2}
    with pytest.raises(NewerFormatError, match=r"needs=2 known=1.*upgrade"):
        decode(json.dumps(changed).encode())


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"needs": "x"}', b'{"a":' + b"[" * 9_999]
)
def test_what_is_no_message_is_still_invalid(body: bytes) -> None:
    for decode in (decode_message, decode_table_message):
        with pytest.raises(InvalidError):
            decode(body)


def test_a_users_message_with_the_word_in_it_is_no_batch_whatever_it_needs() -> None:
    users = b'{"table": "trips", "files": ["s3://landing/a"], "note": {"batch": 1}, "needs": 2}'
    assert batch_message_in(users) is None
    assert batch_message_in(b'["batch", {"needs": 2}]') is None


def test_commits_of_a_newer_release_may_say_more_of_themselves() -> None:
    told = msgspec.msgpack.decode(encode_commits(COMMITS)[1:])
    told[1][0].append("of a newer release")
    body = bytes((MESSAGE_FORMAT,)) + msgspec.msgpack.encode([*told, "more", {"and": "more"}])
    assert decode_commits(body) == COMMITS == decode_commits(encode_commits(COMMITS))
    with pytest.raises(NewerFormatError):
        decode_commits(bytes((MESSAGE_FORMAT + 1,)) + b"another form")


def test_users_are_still_told_of_fields_that_there_are_not() -> None:
    with pytest.raises(InvalidError, match="did you mean 'files'"):
        ingest_message(b'{"table": "trips", "file": ["s3://landing/a.csv"], "needs": 1}')
