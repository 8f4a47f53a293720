"""A file of feeds: what it may say, and what is answered to what it may not."""

import msgspec
import pytest

from lakebed.config.feed_fields import plain, secrets_in
from lakebed.config.feed_sources import (
    FilesFeed,
    KafkaFeed,
    PushFeed,
    S3Feed,
    SocketFeed,
    SqsFeed,
)
from lakebed.config.feeds import Feed, feed_file, feeds_of, file_of, joined
from lakebed.errors import InvalidError

WHOLE = """
[feed.orders]
source = { kafka = "b1:9096,b2:9096", topics = "orders\\\\..*", exclude = "orders\\\\.test", \
start = 2026-11-25T10:00:00Z, security = { mechanism = "SCRAM-SHA-512", user = "lake", \
password = "secret:kafka" } }
decoder = { format = "json", time = { path = "meta.ts", as = "ms" } }
landing = true
rotate_seconds = 5
[connection.orders-eu]
feed = "orders"
table = "orders"
where = "region = 'EU'"
columns = { id = "id", at = { path = "meta.ts", as = "ms" }, amount = "payload.amount" }
rest = "event"
lineage = true
meta = ["key", "time"]
policy = "Careful"
window_seconds = 60
[policy.Careful]
extends = "Strict"
errors_in_row_max = 3
schema = { type = "quarantine" }
"""


def test_feeds_come_in_their_order_with_defaults() -> None:
    text = '[feed.b]\nfiles = "b*"\n[feed.a]\nfiles = "a*"\nversion = 3\nrotate_bytes = 10\n'
    first, second = feeds_of(text)
    assert first == Feed(name="b", source=FilesFeed(files="b*"))
    assert (first.version, first.rotate_bytes, first.landing) == (1, 64 << 20, None)
    assert (first.rotate_records, first.rotate_seconds, first.policy) == (
        1_000_000,
        10.0,
        "FaultTolerant",
    )
    assert (second.name, second.files, second.version, second.rotate_bytes) == ("a", "a*", 3, 10)


def test_a_whole_file_is_understood() -> None:
    file = feed_file(WHOLE)
    (feed,), (connection,), (policy,) = (
        list(file.feeds.values()),
        list(file.connections.values()),
        list(file.policies.values()),
    )
    assert isinstance(feed.source, KafkaFeed)
    assert (feed.source.kafka, feed.source.topics) == ("b1:9096,b2:9096", "orders\\..*")
    assert feed.source.start == "2026-11-25T10:00:00+00:00"
    assert feed.source.security.password == "secret:kafka"
    assert feed.decoder == {"format": "json", "time": {"path": "meta.ts", "as": "ms"}}
    assert feed.rotate_seconds == 5.0
    assert (connection.feed, connection.table, connection.where) == (
        "orders",
        "orders",
        "region = 'EU'",
    )
    assert connection.columns["at"] == {"path": "meta.ts", "as": "ms"}
    assert (connection.rest, connection.lineage, connection.meta) == (
        "event",
        True,
        ("key", "time"),
    )
    assert (connection.policy, connection.window_seconds) == ("Careful", 60)
    assert (policy.extends, policy.changes) == (
        "Strict",
        {"errors_in_row_max": 3, "schema_type": "quarantine"},
    )
    assert list(secrets_in(file.said["feed", "orders"])) == ["kafka"]


def test_what_is_stored_is_read_again_alike() -> None:
    file = feed_file(WHOLE)
    stored = {
        key: msgspec.json.decode(msgspec.json.encode(said)) for key, said in file.said.items()
    }
    assert file_of(stored) == file


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('{ files = "a*" }', FilesFeed(files="a*")),
        ('{ s3 = "s3://bucket/a" }', S3Feed(s3="s3://bucket/a")),
        ('{ sqs = "https://q", receivers = 3 }', SqsFeed(sqs="https://q", receivers=3)),
        ("{ push = true }", PushFeed(push=True)),
        ('{ push = ":8080", token = "secret:t" }', PushFeed(push=":8080", token="secret:t")),
        (
            '{ socket = "[::1]:99", framing = "lengths" }',
            SocketFeed(socket="[::1]:99", framing="lengths"),
        ),
        ('{ kafka = "b:1", topics = ["a", "b"] }', KafkaFeed(kafka="b:1", topics=("a", "b"))),
    ],
)
def test_each_source_is_understood(source: str, wanted: object) -> None:
    (feed,) = feeds_of(f"[feed.a]\nsource = {source}")
    assert feed.source == wanted
    if not isinstance(wanted, FilesFeed):
        with pytest.raises(InvalidError, match="not a feed of files"):
            _ = feed.files


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("feed", "no TOML"),
        ("", r"\[feed.NAME\]"),
        ("[feed]", r"\[feed.NAME\]"),
        ("feed = 3", r"\[feed.NAME\]"),
        ("[feeds.a]", "did you mean 'feed'"),
        ("[feed]\na = 3", r"write \[feed.a\]"),
        ("[feed.a]", "say where"),
        ('[feed.a]\nfile = "x"', "at=feed.a.file.*did you mean 'files'"),
        ("[feed.a]\nfiles = 3", "files"),
        ('[feed.a]\nfiles = ""', "files"),
        ('[feed.a]\nfiles = "x"\nversion = 0', "version"),
        (f'[feed.a]\nfiles = "x"\nversion = {(1 << 52) + 1}', "at=feed.a.version.*1 to 45035"),
        ('[feed.a]\nfiles = "x"\nrotate_bytes = 0', "at=feed.a.rotate_bytes.*1 to 1073741824"),
        (f'[feed.{"a" * 56}]\nfiles = "x"', "not a table name"),
        ('[feed.No]\nfiles = "x"', "not a table name"),
        ('[feed.a]\nfiles = "x"\n[feed.a]\nfiles = "y"', "no TOML"),
        ('[feed.a]\nfiles = "x"\nsource = { files = "y" }', "one source"),
        ('[feed.a]\nsource = "x"', "at=feed.a.source"),
        ("[feed.a]\nsource = {}", "unknown source"),
        ('[feed.a]\nsource = { kafak = "x" }', "did you mean 'kafka'"),
        ('[feed.a]\nsource = { kafka = "x", files = "y" }', "one source"),
        ('[feed.a]\nsource = { kafka = "x" }', "without topics"),
        ('[feed.a]\nsource = { kafka = "x", topics = [] }', "without topics"),
        ('[feed.a]\nsource = { kafka = "x", topics = "(" }', "at=feed.a.source.topics.*"),
        ('[feed.a]\nsource = { kafka = "x", topics = "a", start = "now" }', "earliest, latest"),
        ('[feed.a]\nsource = { kafka = "x", topics = "a", topic = 1 }', "did you mean 'topics'"),
        (
            '[feed.a]\nsource = { kafka = "x", topics = "a", security = { user = "u" } }',
            "half of a login",
        ),
        (
            '[feed.a]\nsource = { kafka = "x", topics = "a", security = { usr = "u" } }',
            "at=feed.a.source.security.usr.*did you mean 'user'",
        ),
        ('[feed.a]\nsource = { s3 = "bucket/x" }', "at=feed.a.source.s3"),
        ('[feed.a]\nsource = { sqs = "q" }\nlanding = false', "landed first"),
        ('[feed.a]\nsource = { push = "8080" }', "at=feed.a.source.push"),
        ("[feed.a]\nsource = { push = false }", "at=feed.a.source.push.*`push = true`"),
        ('[feed.a]\nfiles = "x"\ndecoder = "json"', "at=feed.a.decoder.*a section"),
        ('[feed.a]\nfiles = "x"\ndecoder = { formt = "json" }', "did you mean 'format'"),
        ('[feed.a]\nfiles = "x"\ndecoder = { format = "xml" }', "at=feed.a.decoder"),
        ('[connection.c]\ntable = "t"', "a connection without a feed"),
        ('[connection.c]\nfeed = "f"', "a connection without a table"),
        ('[connection.c]\nfeed = "f"\ntable = "T"', "not a table name"),
        ('[connection.C]\nfeed = "f"\ntable = "t"', "not a name of a connection"),
        ('[connection.c]\nfeed = "f"\ntable = "t"\nwhere = "a ="', "at=connection.c.where"),
        ('[connection.c]\nfeed = "f"\ntable = "t"\nmeta = ["keys"]', "at=connection.c"),
        ('[connection.c]\nfeed = "f"\ntable = "t"\ncolumns = { a = 1 }', "columns.a"),
        ('[connection.c]\nfeed = "f"\ntable = "t"\ncolum = {}', "did you mean 'columns'"),
        ('[policy.P]\nextend = "Basic"', "did you mean 'extends'"),
        ("[policy.P]\nerrors_in_row_max = -1", "at=policy.P.errors_in_row_max.*0 to"),
        ('[policy.P]\non_record_error = "drop"', "`fail`, `skip`, `quarantine`"),
        ('[policy.P]\nschema = { columns = "freeze" }', "did you mean 'column'"),
        ('[policy.P]\nschema = { type = "evolve" }', "at=policy.P.schema_type"),
        ('[policy.P]\nschema_type = "freeze"\nschema = { type = "freeze" }', "said twice"),
        ("[policy.Basic]\nerrors_in_row_max = 1", "every lake has"),
        ("[policy.P]\nextends = 1", "at=policy.P.extends"),
        ("[policy.'a b']", "not a name of a policy"),
    ],
)
def test_what_it_may_not_say_is_answered_with_what_it_may(text: str, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        feeds_of(text)


@pytest.mark.parametrize(
    "field",
    [
        'source = { kafka = "b", topics = "t", security = { password = "hunter2" } }',
        'files = "x"\ndecoder = { format = "avro", registry = { api_key = "hunter2" } }',
        'source = { push = ":1", token = "hunter2" }',
        'files = "x"\ndecoder = { registry = "https://user:hunter2@host/x" }',
        'source = { sqs = "https://user:hunter2@host/x" }',
        'source = { push = ":1", token = "secret:hunter2!" }',
    ],
)
def test_a_secret_in_the_open_is_refused_and_not_shown(field: str) -> None:
    with pytest.raises(InvalidError, match=r"feed\.a\.") as raised:
        feed_file(f"[feed.a]\n{field}")
    assert "hunter2" not in str(raised.value)


def test_a_column_may_be_called_password() -> None:
    text = '[connection.c]\nfeed = "f"\ntable = "t"\ncolumns = { password = "user.password" }'
    assert feed_file(text).connections["c"].columns == {"password": "user.password"}


def test_what_is_nested_too_deep_is_refused() -> None:
    deep: object = "x"
    for _ in range(50):
        deep = {"a": deep}
    with pytest.raises(InvalidError, match="nested too deep"):
        plain(deep)
    with pytest.raises(InvalidError):
        feed_file("[feed.a]\nfiles = " + "[" * 5_000)


def test_files_are_taken_together_and_none_defines_what_another_does() -> None:
    first = feed_file('[feed.a]\nfiles = "x"')
    second = feed_file('[feed.b]\nfiles = "y"\n[policy.a]')
    assert list(joined({"1.toml": first, "2.toml": second}).feeds) == ["a", "b"]
    with pytest.raises(InvalidError, match=r"at=feed.a files=1.toml, 2.toml"):
        joined({"1.toml": first, "2.toml": first})
