"""What a person types to name versions of a table, to read them, and to follow its changes."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    """A table that two jobs have put a row each into, by entries 2 and 3."""
    shell = Shell(tmp_path)
    shell.ok("table", "create", "trips", "--row-key", "id:string", "--value", "n:int64?")
    for name in "ab":
        rows = {"id": [name], "n": pa.array([1], pa.int64())}
        path = shell.write(f"{name}.parquet", rows)
        shell.ok("ingest", "trips", path, "--job", f"job-{name}")
    return shell


LOOKS = ("head", "sample")


def ids(shell: Shell, *options: str) -> list[str]:
    lines = shell.ok("query", "trips", "--json", *options).splitlines()
    return [json.loads(line)["id"] for line in lines]


def changes(shell: Shell, *options: str) -> list[str]:
    lines = shell.ok("changes", "trips", "--json", *options).splitlines()
    return [json.loads(line)["job"] for line in lines]


def test_a_version_is_read_by_its_number_and_by_its_tag(trips: Shell) -> None:
    assert ids(trips, "--as-of", "2") == ["a"]
    assert trips.ok("query", "trips", "--as-of", "2", "--count") == "1\n"
    assert trips.json("query", "trips", "--as-of", "2", "--explain")["number"] == 2
    said = trips.ok("table", "tag", "trips", "2026-q3", "--as-of", "2")
    assert said == "trips has tag 2026-q3 at log entry 2\n"
    trips.ok("compact", "trips")
    assert ids(trips, "--as-of", "2026-q3") == ["a"]
    assert ids(trips) == ["a", "b"]


@pytest.mark.parametrize("version", ["2", "then"])
def test_an_older_version_is_looked_at(trips: Shell, version: str) -> None:
    trips.ok("table", "tag", "trips", "then", "--as-of", "2")
    asked = "--as-of", version
    assert trips.ok("count", "trips", *asked) == "1\n"
    assert trips.json("count", "trips", "--where", "n = 1", *asked) == {"rows": 1}
    assert [json.loads(trips.ok(one, "trips", "--json", *asked))["id"] for one in LOOKS] == [
        "a"
    ] * 2
    (file,) = trips.json("files", "trips", *asked)
    assert [file] == [one for one in trips.json("files", "trips") if one["path"] == file["path"]]
    assert trips.ok("count", "trips") == "2\n"
    assert len(trips.json("files", "trips")) == 2


def test_tags_are_listed_and_dropped(trips: Shell) -> None:
    assert trips.ok("table", "tags", "trips") == "no tags\n"
    assert trips.json("table", "tag", "trips", "now")["number"] == 4
    (tag,) = trips.json("table", "tags", "trips")["tags"]
    assert (tag["tag"], tag["number"]) == ("now", 4)
    assert tag["tagged_at"].endswith("Z")
    assert trips.ok("table", "tags", "trips").splitlines()[1].startswith("now  4 ")
    assert "kept      tag now: entry 4" in trips.ok("status", "trips")
    assert "tag now on this entry" in trips.ok("state", "log", "trips")
    assert trips.ok("table", "untag", "trips", "now") == "dropped tag now of trips\n"
    assert trips.json("table", "tags", "trips")["tags"] == []


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("query", "trips", "--as-of", "99"), "invalid", "the newest version is 4"),
        (("count", "trips", "--as-of", "99"), "invalid", "the newest version is 4"),
        (("head", "trips", "--as-of", "99"), "invalid", "the newest version is 4"),
        (("sample", "trips", "--as-of", "thn"), "invalid", "did you mean 'then'?"),
        (("files", "trips", "--as-of", "2026-01-01"), "invalid", "add an offset"),
        (("query", "trips", "--as-of", "thn"), "invalid", "did you mean 'then'?"),
        (("query", "trips", "--as-of", "2026-01-01"), "invalid", "add an offset"),
        (("query", "trips", "--as-of", "a b"), "invalid", "the name of a tag"),
        (("table", "tag", "trips", "then"), "tag-exists", "drop that tag first"),
        (("table", "tag", "trips", "41"), "invalid", "add a letter"),
        (("table", "untag", "trips", "thn"), "invalid", "did you mean 'then'?"),
        (("changes", "trips", "--after", "99"), "invalid", "the newest version is 4"),
        (("changes", "trips", "--drop"), "invalid", "add --follower NAME"),
        (("changes", "trips", "--follower", "m", "--drop"), "invalid", "no follower yet"),
    ],
)
def test_what_cannot_be_is_refused(
    trips: Shell, args: tuple[str, ...], code: str, says: str
) -> None:
    trips.ok("table", "tag", "trips", "then")
    _, error = trips.refused(*args)
    assert error["code"] == code
    assert says in error["hint"]


def test_changes_are_shown_in_the_order_of_commits(trips: Shell) -> None:
    trips.ok("table", "clear", "trips", "--yes")
    first, second, third = trips.ok("changes", "trips").splitlines()
    assert first.split()[0] == "2"
    assert first.endswith("1 row  job-a")
    assert second.endswith("1 row  job-b")
    assert "cleared" in third
    assert changes(trips, "--after", "2", "--limit", "1") == ["job-b"]
    shown = trips.ok("changes", "trips", "--rows", "--limit", "1").splitlines()
    assert json.loads(shown[1]) == {"id": "a", "n": 1}


def test_a_follower_is_shown_each_change_once(trips: Shell) -> None:
    assert changes(trips, "--follower", "mirror", "--after", "0", "--limit", "1") == ["job-a"]
    assert changes(trips, "--follower", "mirror") == ["job-b"]
    assert changes(trips, "--follower", "mirror") == []
    assert "follower mirror" in trips.ok("status", "trips")
    said = trips.ok("changes", "trips", "--follower", "mirror", "--drop")
    assert said == "dropped follower mirror of trips\n"
