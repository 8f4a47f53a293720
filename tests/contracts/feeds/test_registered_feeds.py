"""Feeds whose records name their schema: from what is pushed, through a registry on the web, to
rows; and what becomes of them while the registry is away, or does not know."""

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.bootstrap.feeds.receivers import receiver_of
from lakebed.errors import DeniedError, InvalidError, UnavailableError
from lakebed.feed_errors import SecretMissingError
from lakebed.feeds.run_feeds import FeedDone
from lakebed.landing.push.receiver import RequestHead
from tests.servers.confluent import ConfluentServer, confluent_server, reply

fastavro = pytest.importorskip("fastavro")

TEXT = """
[feed.orders]
source = {{ push = true }}
decoder = {{ format = "avro", registry = {registry} }}
[connection.all]
feed = "orders"
table = "orders"
[connection.again]
feed = "orders"
table = "orders2"
"""
FIELDS: list[dict[str, Any]] = [{"name": "id", "type": "long"}, {"name": "n", "type": "int"}]
ORDER = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})
SUBJECT = '{{ url = "{url}", subject = "orders-value" }}'


class Registered:
    """A lake with a feed that is pushed to, and a registry."""

    def __init__(self, folder: Path, server: ConfluentServer) -> None:
        self.folder, self.server = folder, server
        self.lake = lakebed.connect(folder / "lake", create=True)
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64"})
        for table in ("orders", "orders2"):
            self.lake.create_table(table, schema)

    def define(self, registry: str = '"{url}"', text: str = TEXT) -> None:
        said = text.format(registry=registry.format(url=self.server.url))
        feeds = lakebed.FeedDefinitions(self.lake)
        feeds.apply(said)
        feeds.start("orders")

    def push(self, *records: bytes) -> None:
        receiver = receiver_of(self.lake._app, "orders", None)[0]
        for body in records:
            headers = [("content-type", "application/octet-stream")]
            headers += [("content-length", str(len(body)))]
            answer = receiver.respond(RequestHead("POST", "/orders", headers), lambda _, b=body: b)
            assert answer.status == 200

    def run(self) -> dict[str, FeedDone]:
        return {done.name: done for done in lakebed.Feeds(self.lake).run()}

    def rows(self, table: str = "orders") -> list[dict[str, Any]]:
        return self.lake.table(table).query().read_all().to_pylist()

    def quarantined(self) -> list[str]:
        """Return verdicts by name: segments that are pushed at once land in any order."""
        if "orders_quarantine" not in self.lake.tables():
            return []
        return sorted(row["verdict"] for row in self.rows("orders_quarantine"))


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Registered]:
    with confluent_server() as server:
        made = Registered(tmp_path, server)
        yield made
        made.lake.close()


def framed(id_: int, value: dict[str, Any], schema: str = ORDER) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(json.loads(schema)), value)
    return b"\x00" + id_.to_bytes(4, "big") + file.getvalue()


def test_records_are_rows_by_their_schemas_each_of_which_is_asked_for_once(
    given: Registered,
) -> None:
    newer = json.dumps({"type": "record", "name": "Order", "fields": FIELDS[::-1]})
    first, second = given.server.register(ORDER), given.server.register(newer)
    given.define()
    records = [framed(first, {"id": 1, "n": 7}), framed(second, {"id": 2, "n": 8}, newer)]
    given.push(*records, framed(first, {"id": 3, "n": 9}))
    given.run()
    rows = [{"id": 1, "n": 7}, {"id": 2, "n": 8}, {"id": 3, "n": 9}]
    assert given.rows() == given.rows("orders2") == rows
    assert sorted(given.server.asked) == ["/schemas/ids/1", "/schemas/ids/2"]
    assert given.quarantined() == []


def test_an_id_that_the_registry_does_not_know_is_quarantined_and_can_be_replayed(
    given: Registered,
) -> None:
    id_ = given.server.register(ORDER)
    given.define()
    given.push(framed(id_, {"id": 1, "n": 7}), framed(2, {"id": 2, "n": 8}))
    given.run()
    assert given.rows() == [{"id": 1, "n": 7}]
    assert given.quarantined() == ["schema-unknown"] * 2, "of each connection"
    assert given.server.asked.count("/schemas/ids/2") == 2, "of all connections together"


def test_a_registry_that_is_away_is_waited_for_and_no_record_is_judged(given: Registered) -> None:
    id_ = given.server.register(ORDER)
    given.define()
    given.push(framed(id_, {"id": 1, "n": 7}))
    given.server.misbehave = lambda handler: bool(reply(handler, 503)) or True
    done = given.run()
    assert (done["all"].code, done["all"].commits) == (UnavailableError.code(), 0)
    assert given.rows() == []
    given.server.misbehave = None
    assert given.run()["all"].code == ""
    assert given.rows() == [{"id": 1, "n": 7}]
    assert given.quarantined() == []


def test_a_password_is_a_secret_and_is_read_anew(
    given: Registered, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = given.server.register(ORDER)
    given.define('{{ url = "{url}", user = "feed", password = "secret:registry" }}')
    given.push(framed(id_, {"id": 1, "n": 7}))
    with pytest.raises(SecretMissingError, match="registry"):
        given.run()
    given.server.login = ("feed", "hunter2")
    monkeypatch.setenv("LAKEBED_SECRET_REGISTRY", "wrong")
    refused = given.run()["all"]
    assert refused.code == DeniedError.code()
    assert "wrong" not in refused.reason
    monkeypatch.setenv("LAKEBED_SECRET_REGISTRY", "hunter2")
    given.run()
    assert given.rows() == [{"id": 1, "n": 7}]


def test_a_definition_with_a_subject_is_refused_if_the_registry_has_none_that_fits(
    given: Registered,
) -> None:
    at = "feed.orders.decoder.registry.subject"
    with pytest.raises(InvalidError, match=f"no such subject .*at={at}"):
        given.define(SUBJECT)
    given.server.register('{"type": "object"}', kind="json", subject="orders-value")
    with pytest.raises(InvalidError, match=f"not a schema of Avro .*at={at}"):
        given.define(SUBJECT)
    other = [{"name": "idd", "type": "long"}, FIELDS[1]]
    text = json.dumps({"type": "record", "name": "Order", "fields": other})
    given.server.register(text, subject="orders-value")
    with pytest.raises(InvalidError, match=f"no such field .*at={at}.*did you mean 'idd'"):
        given.define(SUBJECT)
    given.server.register(ORDER, subject="orders-value")
    given.define(SUBJECT)


def test_a_registry_that_is_away_is_named_when_a_definition_with_a_subject_is_applied(
    given: Registered,
) -> None:
    given.server.misbehave = lambda handler: bool(reply(handler, 503)) or True
    with pytest.raises(UnavailableError, match=re.escape(given.server.url)):
        given.define(SUBJECT)
    given.server.misbehave = None
    assert lakebed.FeedDefinitions(given.lake).feeds() == [], "nothing was applied"


def test_without_a_subject_nothing_is_asked_when_a_definition_is_applied(
    given: Registered,
) -> None:
    given.define()
    assert given.server.asked == []


PROTOBUF = """
[feed.orders]
source = {{ push = true }}
decoder = {{ format = "protobuf", framing = "registry", message = "shop.Order", \
descriptors = {registry} }}
[connection.all]
feed = "orders"
table = "orders"
"""


def test_protobuf_is_read_by_a_descriptor_set_of_a_file_behind_its_frame(
    given: Registered,
) -> None:
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Zero")
    order = file.message_type.add(name="Order")
    for number, name in enumerate(("id", "n"), 1):
        order.field.add(name=name, number=number, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    path = given.folder / "orders.desc"
    with pytest.raises(InvalidError, match=r"cannot be read .*at=feed.orders.decoder.descriptors"):
        given.define(json.dumps(str(path)), PROTOBUF)
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    given.define(json.dumps(str(path)), PROTOBUF)
    head = b"\x00\x00\x00\x00\x05"
    of_other, of_order = head + b"\x02\x00\x08\x01", head + b"\x02\x02\x08\x07\x10\x09"
    given.push(of_other, of_order, of_order[5:])
    given.run()
    assert given.rows() == [{"id": 7, "n": 9}]
    assert given.quarantined() == ["type-mismatch", "unparsable"]


REGISTERED = """
[feed.orders]
source = {{ push = true }}
decoder = {{ format = "protobuf", registry = {registry} }}
[connection.all]
feed = "orders"
table = "orders"
"""


def test_protobuf_is_read_by_the_schemas_that_wrote_it(given: Registered) -> None:
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    for number, name in enumerate(("id", "n"), 1):
        order.field.add(name=name, number=number, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    first, second = 'syntax = "proto3"; // 1', 'syntax = "proto3"; // 2'
    given.server.serialized[first] = base64.b64encode(file.SerializeToString()).decode()
    order.field[0].number = 3
    given.server.serialized[second] = base64.b64encode(file.SerializeToString()).decode()
    ids = [
        given.server.register(text, kind="protobuf", subject="orders-value")
        for text in (first, second)
    ]
    given.define(SUBJECT, REGISTERED)
    given.push(
        b"\x00" + ids[0].to_bytes(4, "big") + b"\x00\x08\x01\x10\x07",
        b"\x00" + ids[1].to_bytes(4, "big") + b"\x00\x18\x02\x10\x08",
        b"\x00" + (77).to_bytes(4, "big") + b"\x00\x08\x03\x10\x09",
    )
    given.run()
    assert given.rows() == [{"id": 1, "n": 7}, {"id": 2, "n": 8}]
    assert given.quarantined() == ["schema-unknown"]
