"""A lake with feeds is copied and restored: they go on where they were, each record once."""

from pathlib import Path

import pytest

import lakebed
from lakebed.backends.memory import MemoryFeedRegistry
from lakebed.backups.copy_definitions import CopyDefinitions
from lakebed.model.feeds.definitions import Drop, NamedDefinition

TEXT = """
[feed.rides]
files = "{folder}/*.json"
decoder = {{ format = "json" }}
[connection.rides]
feed = "rides"
table = "rides"
"""


def write(folder: Path, *ids: int) -> None:
    with (folder / "a.json").open("a", encoding="utf-8") as file:
        file.writelines(f'{{"id": {id_}}}\n' for id_ in ids)


def ids(lake: lakebed.Lake) -> list[int]:
    return lake.table("rides").query().read_all()["id"].to_pylist()


def test_a_restored_feed_goes_on_where_the_backup_was(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        lake.create_table("rides", lakebed.schema_of(row_keys={"id": "int64"}))
        definitions = lakebed.FeedDefinitions(lake)
        definitions.apply(TEXT.format(folder=tmp_path))
        definitions.start("rides")
        write(tmp_path, 1, 2)
        lakebed.Feeds(lake).run()
        lake.backup(tmp_path / "backup")
        write(tmp_path, 3)
        lakebed.Feeds(lake).run()
        lake.backup(tmp_path / "backup")
        write(tmp_path, 4)
        lakebed.Feeds(lake).run()
    with lakebed.connect(tmp_path / "restored", create=True) as lake:
        lake.restore(tmp_path / "backup")
        assert ids(lake) == [1, 2, 3]
        assert lakebed.Feeds(lake).run() == [], "nothing runs before it is started"
        lakebed.FeedDefinitions(lake).start("rides")
        (done,) = lakebed.Feeds(lake).run()
        assert (done.code, done.tally.read) == ("", 1)
        assert ids(lake) == [1, 2, 3, 4]


def definition(name: str, body: bytes = b"{}", id_: str = "a1") -> NamedDefinition:
    return NamedDefinition(kind="policy", name=name, id=id_, body=body)


@pytest.mark.parametrize("count", [1, 250])
def test_only_what_differs_is_copied_and_what_is_gone_is_dropped(count: int) -> None:
    source, target = MemoryFeedRegistry(), MemoryFeedRegistry()
    for number in range(count):
        source.put(definition(f"p{number}"), 0)
    copy = CopyDefinitions(source=source, target=target)
    assert copy.run() == count
    assert target.number() > source.number(), "versions of the copy are newer than tables know"
    assert copy.run() == 0
    stored = source.get("policy", "p0")
    assert stored is not None
    source.change([Drop("policy", "p0", stored.definition.version)])
    source.put(definition("new", b"[]"), 0)
    assert copy.run() == 2
    assert target.get("policy", "p0") is None
    found = target.get("policy", "new")
    assert found is not None
    assert found.definition.body == b"[]"
