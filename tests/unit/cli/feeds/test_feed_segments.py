"""`lakebed feed segments`, and the line of `feed status`: what was pushed and waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap.feeds.receivers import receiver_of
from lakebed.landing.push.receiver import RequestHead
from tests.unit.cli.programs import Shell

TEXT = """
[feed.orders]
source = { push = true }
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "other", "--row-key", "id:string")
    (tmp_path / "feeds.toml").write_text(TEXT)
    shell.ok("feed", "apply", str(tmp_path / "feeds.toml"))
    return shell


def push(shell: Shell, *bodies: bytes, text: str | None = None) -> None:
    with lakebed.connect(shell.lake) as lake:
        receiver, _ = receiver_of(lake._app, "orders", text)
        for body in bodies:
            headers = [
                ("content-type", "application/x-ndjson"),
                ("content-length", str(len(body))),
            ]
            head = RequestHead("POST", "/orders", headers)
            assert receiver.respond(head, lambda _, body=body: body).status == 200


def waiting(shell: Shell) -> list[Path]:
    return sorted(path for path in (shell.lake / "objects" / "feeds").rglob("*") if path.is_file())


def id_of(shell: Shell) -> str:
    (found,) = shell.json("feed", "segments", "list")
    return str(found["id"])


def test_what_waits_is_counted_by_status_with_its_age(shell: Shell) -> None:
    assert "waiting" not in shell.ok("feed", "status", "--listen", "0")
    push(shell, b"one\ntwo\n", b"three\n")
    line = shell.ok("feed", "status", "--listen", "0").splitlines()[-2]
    size = sum(path.stat().st_size for path in waiting(shell))
    assert line.startswith(f"orders: 2 segments waiting, {size} bytes, the oldest for ")
    (feed,) = shell.json("feed", "status", "--listen", "0")["feeds"]
    assert (feed["pushed"]["count"], feed["pushed"]["bytes"]) == (2, size)
    assert 0 <= feed["pushed"]["oldest_seconds"] < 60
    shell.ok("feed", "start", "orders")
    shell.ok("feed", "run", "--once")
    assert "waiting" not in shell.ok("feed", "status", "--listen", "0")


def test_segments_and_their_records_are_shown_and_no_terminal_obeys_them(shell: Shell) -> None:
    push(shell, b"a\x1b[31mb\ntwo\n", b"three\n")
    said = shell.ok("feed", "segments", "show", "orders").splitlines()
    assert said[0].split() == ["SEGMENT", "BYTES", "CAME"]
    names = {path.name.partition("-")[0] for path in waiting(shell)}
    assert {line.split()[0] for line in said[1:]} == names
    assert all(line.endswith("Z") for line in said[1:])
    said = shell.ok("feed", "segments", "show", "orders", "--values")
    assert "\x1b" not in said
    lines = [
        json.loads(line)
        for line in shell.ok(
            "feed", "segments", "show", "orders", "--values", "--json"
        ).splitlines()
    ]
    found = sorted((one["position"], one["value"]) for one in lines)
    assert found == [(0, "a\x1b[31mb"), (0, "three"), (1, "two")]
    assert {one["source_split"] for one in lines} == names
    assert len(shell.ok("feed", "segments", "show", "orders", "--limit", "1").splitlines()) == 2
    many = shell.ok("feed", "segments", "show", "orders", "--values", "--limit", "2")
    assert len(many.splitlines()) == 3


def test_a_segment_that_is_damaged_is_named_and_hides_no_other(shell: Shell) -> None:
    push(shell, b"one\n", b"two\n")
    damaged = waiting(shell)[0]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    result = shell.run("feed", "segments", "show", "orders", "--values")
    assert result.exit_code
    assert f"failed: segment {damaged.name.partition('-')[0]}: corrupt" in result.stderr
    assert len(result.stdout.splitlines()) == 2


def test_segments_of_a_feed_that_was_dropped_are_listed_and_removed_by_its_id(
    shell: Shell,
) -> None:
    push(shell, b"one\n", b"two\n")
    id_ = id_of(shell)
    shell.ok("feed", "drop", "orders")
    (found,) = shell.json("feed", "segments", "list")
    assert (found["feed"], found["id"], found["waiting"]["count"]) == ("", id_, 2)
    assert shell.ok("feed", "segments", "list").splitlines()[1].startswith(f"-     {id_}  2 seg")
    assert len(shell.ok("feed", "segments", "show", id_, "--values").splitlines()) == 3
    assert "would remove: 2 segments" in shell.ok("feed", "segments", "drop", id_, "--dry-run")
    assert shell.refused("feed", "segments", "drop", id_)[1]["hint"] == "add --yes"
    assert len(waiting(shell)) == 2
    assert shell.ok("feed", "segments", "drop", id_, "--yes").startswith("removed 2 segments")
    assert waiting(shell) == []
    assert shell.ok("feed", "segments", "list") == "nothing was pushed\n"


def test_of_a_feed_that_is_defined_they_are_removed_only_if_that_is_said(shell: Shell) -> None:
    push(shell, b"one\n")
    for name in ("orders", id_of(shell)):
        code, error = shell.refused("feed", "segments", "drop", name, "--yes")
        assert (code, "the lake defines this feed" in error["message"]) == (2, True)
        assert "--although-defined" in error["hint"]
    assert len(waiting(shell)) == 1
    shell.ok("feed", "segments", "drop", "orders", "--although-defined", "--yes")
    assert waiting(shell) == []


def test_a_feed_that_there_is_not_is_answered_with_the_nearest(shell: Shell) -> None:
    for command in ("show", "drop"):
        assert shell.refused("feed", "segments", command, "order")[1]["hint"] == (
            "did you mean 'orders'?"
        )
    push(shell, b"one\n")
    id_ = id_of(shell)
    shell.ok("feed", "drop", "orders")
    near = id_[:-1] + ("0" if id_[-1] != "0" else "1")
    assert shell.refused("feed", "segments", "drop", near, "--yes")[1]["hint"] == (
        f"did you mean '{id_}'?"
    )


@pytest.fixture
def in_file(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "other", "--row-key", "id:string")
    return shell


def test_segments_of_a_feed_of_a_file_are_found_by_its_name(in_file: Shell) -> None:
    push(in_file, b"one\n", text=TEXT)
    assert len(in_file.ok("feed", "segments", "show", "orders").splitlines()) == 2
    in_file.ok("feed", "segments", "drop", "orders", "--yes")
    assert waiting(in_file) == []
