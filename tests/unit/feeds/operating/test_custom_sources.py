"""Definitions that name an adaptor: loaded by name and version, given its settings and secrets."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.local.secrets import EnvironmentSecrets
from lakebed.bootstrap.feeds.custom_sources import custom_source
from lakebed.config.definitions.custom_sources import CustomFeed
from lakebed.config.feed_sources import source_of
from lakebed.config.packages import ADAPTORS
from lakebed.errors import InvalidError
from lakebed.feed_errors import SecretMissingError
from lakebed.ports.record_source import RecordSource
from tests.tidy.source import ROOT
from tests.unit.cli.programs import Shell

PAGE = (ROOT / "docs" / "change" / "source.md").read_text("utf-8")
ADAPTOR = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
MORE = """

SEEN = []


def seen(settings):
    SEEN.append(settings)
    return Outbox("x")


def raises(settings):
    raise ValueError("no such thing as " + str(settings.get("password", settings)))


def unordered(settings):
    source = Outbox("x")
    source.has_items = True
    return source
"""
TEXT = """
[feed.events]
source = {{ kind = "outbox", path = "{path}" }}
landing = true
decoder = {{ format = "json" }}
[connection.all]
feed = "events"
table = "events"
"""

Install = Callable[..., str]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package that provides sources, by their names."""

    def installing(version: str = "1.2", **points: str) -> str:
        name = f"outbox_{version.replace('.', '_')}_of_a_test"
        site = tmp_path / f"site-{version}"
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (site / f"{name}.py").write_text(ADAPTOR + MORE)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        lines = "".join(f"{kind} = {name}:{what}\n" for kind, what in points.items())
        (info / "entry_points.txt").write_text(f"[{ADAPTORS}]\n{lines}")
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return installing


def outbox(folder: Path, *bodies: str) -> Path:
    path = folder / "outbox.db"
    with closing(sqlite3.connect(path)) as database, database:
        columns = "id INTEGER PRIMARY KEY, topic TEXT, body BLOB"
        database.execute(f"CREATE TABLE IF NOT EXISTS outbox ({columns})")
        for body in bodies:
            database.execute("INSERT INTO outbox (topic, body) VALUES ('t', ?)", (body.encode(),))
    return path


def shell_in(folder: Path, text: str) -> Shell:
    shell = Shell(folder)
    shell.ok("table", "create", "events", "--row-key", "id:int64")
    (folder / "feeds.toml").write_text(text)
    return shell


def rows(shell: Shell) -> list[int]:
    with lakebed.connect(shell.lake) as lake:
        return list(lake.table("events").query().read_all()["id"].to_pylist())


def made(secrets: dict[str, str] | None = None, **said: object) -> RecordSource[pa.RecordBatch]:
    source = source_of(said, "feed.f.source")
    assert isinstance(source, CustomFeed)
    return custom_source(source, EnvironmentSecrets(secrets or {}))


def test_a_feed_of_an_adaptor_is_applied_started_and_run(tmp_path: Path, install: Install) -> None:
    install(outbox="outbox")
    path = outbox(tmp_path, '{"id": 1}', '{"id": 2}')
    shell = shell_in(tmp_path, TEXT.format(path=path))
    shell.ok("feed", "apply", str(tmp_path / "feeds.toml"))
    shell.ok("feed", "start", "events")
    shell.ok("feed", "run", "--once")
    outbox(tmp_path, '{"id": 3}')
    shell.ok("feed", "run", "--once")
    assert rows(shell) == [1, 2, 3]
    said = shell.ok("feed", "describe", "events")
    assert "source    kind = outbox" in said
    lines = shell.ok("feed", "print", "events", "--json").splitlines()
    assert [json.loads(line)["position"] for line in lines] == [1, 2, 3]


def test_a_feed_of_an_adaptor_is_run_from_its_file(tmp_path: Path, install: Install) -> None:
    install(outbox="outbox")
    shell = shell_in(tmp_path, TEXT.format(path=outbox(tmp_path, '{"id": 7}')))
    for _ in ("once", "again"):
        shell.ok("feed", "run", str(tmp_path / "feeds.toml"), "--once")
    assert rows(shell) == [7]
    lines = shell.ok("feed", "tap", str(tmp_path / "feeds.toml"), "--from", "start")
    assert json.loads(lines.splitlines()[0])["verdict"] == "row"


def test_one_that_is_not_installed_is_refused_with_the_nearest(
    tmp_path: Path, install: Install
) -> None:
    install(outbox="outbox")
    shell = shell_in(tmp_path, TEXT.format(path="x").replace('"outbox"', '"outbax"'))
    for command in (["apply"], ["run", "--once"]):
        code, error = shell.refused("feed", command[0], str(tmp_path / "feeds.toml"), *command[1:])
        assert code == 2
        assert "did you mean 'outbox'?" in error["hint"]
        assert "install the package" in error["hint"]
    code, error = shell.refused("feed", "apply", str(tmp_path / "feeds.toml"))
    assert error["facts"]["at"] == "feed.events.source.kind"
    assert shell.ok("feed", "list").startswith("no feed yet")


def test_where_it_is_not_installed_its_definition_is_read_all_the_same(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All definitions are read together: one that cannot run here hides no other."""
    install(outbox="outbox")
    shell = shell_in(tmp_path, TEXT.format(path=outbox(tmp_path, '{"id": 1}')))
    shell.ok("feed", "apply", str(tmp_path / "feeds.toml"))
    shell.ok("feed", "start", "events")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if "site-1.2" not in one])
    assert "running" in shell.ok("feed", "list")
    result = shell.run("feed", "run", "--once")
    assert result.exit_code == 2
    assert "no such source is installed" in result.output


def test_settings_are_plain_values_and_secrets_are_read(install: Install) -> None:
    name = install(seen="seen")
    said = {
        "path": "a b", "n": 3, "x": 1.5, "on": True, "list": ["a", "secret:other"],
        "login": {"user": "me", "password": "secret:outbox"},
    }  # fmt: skip
    secrets = {"LAKEBED_SECRET_OUTBOX": "hunter2", "LAKEBED_SECRET_OTHER": "x"}
    made(secrets, kind="seen", version="1.2", **said)
    (seen,) = sys.modules[name].SEEN
    assert seen == said | {"list": ["a", "x"], "login": {"user": "me", "password": "hunter2"}}
    with pytest.raises(SecretMissingError):
        made({}, kind="seen", **said)


def test_a_version_is_that_of_the_package(install: Install) -> None:
    install("1.2", outbox="outbox")
    made(kind="outbox", version="1.2", path="x")
    with pytest.raises(InvalidError, match=r"another version.*version=1\.3") as raised:
        made(kind="outbox", version="1.3", path="x")
    assert "installed: 1.2" in str(raised.value.hint)
    install("1.3", outbox="outbox")
    module = type(made(kind="outbox", version="1.2", path="x")).__module__
    assert module == "outbox_1_2_of_a_test"
    with pytest.raises(InvalidError, match="several packages") as raised:
        made(kind="outbox", path="x")
    assert "1.2, 1.3" in str(raised.value.hint)


def test_an_adaptor_that_fails_says_why_and_no_secret(install: Install) -> None:
    install(raises="raises", lost="no_such_function")
    with pytest.raises(InvalidError, match=r"refuses its settings.*ValueError: no such thing"):
        made(kind="raises", path="x")
    with pytest.raises(InvalidError, match=r"refuses its settings.*ValueError") as raised:
        made({"LAKEBED_SECRET_A": "hunter2"}, kind="raises", password="secret:a")
    assert "hunter2" not in str(raised.value)
    with pytest.raises(InvalidError, match=r"cannot be loaded.*AttributeError"):
        made(kind="lost")


def test_one_without_order_must_say_so_and_is_landed_first(install: Install) -> None:
    install(unordered="unordered")
    with pytest.raises(InvalidError, match="no order") as raised:
        made(kind="unordered")
    assert "ordered = false" in str(raised.value.hint)
    made(kind="unordered", ordered=False)
    assert not source_of({"kind": "unordered", "ordered": False}, "source").is_ordered


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"kind": "kafka", "servers": "b:1"}, "this kind needs no adaptor"),
        ({"kind": 3}, r"at=feed\.f\.source\.kind"),
        ({"kind": "a b"}, r"at=feed\.f\.source\.kind"),
        ({"kind": "outbox", "version": 1.2}, r"at=feed\.f\.source\.version"),
        ({"kind": "outbox", "ordered": "no"}, r"at=feed\.f\.source\.ordered"),
        ({"outbox": "x"}, "an unknown source"),
    ],
)
def test_what_is_no_source_is_refused(said: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        source_of(said, "feed.f.source")


def test_a_secret_in_the_open_is_refused(tmp_path: Path, install: Install) -> None:
    install(outbox="outbox")
    text = '[feed.e]\nsource = { kind = "outbox", login = { password = "hunter2" } }\n'
    shell = shell_in(tmp_path, text)
    code, error = shell.refused("feed", "apply", str(tmp_path / "feeds.toml"))
    assert (code, "secret stands in the open" in error["message"]) == (2, True)
    assert "hunter2" not in str(error)
