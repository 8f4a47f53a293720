"""Feeds from Python: defined, started, taken and read without the command."""

from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap.feeds.worker import feed_worker
from lakebed.errors import InvalidError


def test_a_feed_is_defined_started_run_and_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text('{"id": "x", "n": 1}\n{"id": "y"}\nnone\n')
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        schema = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64?"})
        lake.create_table("orders", schema)
        definitions = lakebed.FeedDefinitions(lake)
        said = {"source": {"files": f"{tmp_path}/*.log"}, "decoder": {"format": "json"}}
        connection = {"feed": "orders", "table": "orders"}
        assert definitions.define("feed", "orders", said, dry_run=True).action == "create"
        with pytest.raises(InvalidError, match="no feed has this name"):
            definitions.define("connection", "all", connection)
        assert definitions.define("feed", "orders", said).version == 1
        assert definitions.define("connection", "all", connection).version == 2
        assert lakebed.Feeds(lake).run() == [], "nothing was started"
        assert definitions.start("orders").standing == "running"
        assert not [done.code for done in lakebed.Feeds(lake).run() if done.code]
        rows = lake.table("orders").query().read_all().to_pylist()
        assert rows == [{"id": "x", "n": 1}, {"id": "y", "n": None}]
        feed, connections = definitions.describe("orders")
        assert (feed.version, [one.version for one in connections]) == (1, [2])
        assert [one.feed for one in definitions.feeds()] == ["orders"]


def test_workers_hear_that_a_feed_is_suspended_and_no_more_of_one_that_is_stopped(
    tmp_path: Path,
) -> None:
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        lake.create_table("orders", lakebed.schema_of(row_keys={"id": "string"}, values={}))
        definitions = lakebed.FeedDefinitions(lake)
        said = {"files": "x", "decoder": {"format": "json"}, "landing": True}
        definitions.define("feed", "orders", said)
        definitions.define("connection", "all", {"feed": "orders", "table": "orders"})

        def heard() -> list[tuple[str, bool]]:
            return [(one.kind, one.is_suspended) for one in feed_worker(lake._app)._wanted()]

        assert heard() == []
        definitions.start("orders")
        assert heard() == [("feed", False), ("connection", False)]
        definitions.suspend("orders")
        assert heard() == [("feed", True), ("connection", True)]
        assert lakebed.Feeds(lake).run() == []
        definitions.resume("orders")
        assert heard() == [("feed", False), ("connection", False)]
        definitions.stop("orders")
        assert heard() == []


def test_a_policy_is_defined_and_used(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        definitions = lakebed.FeedDefinitions(lake)
        definitions.define("policy", "Careful", {"extends": "Strict", "nulls": "ignore"})
        assert definitions.policies()["Careful"].nulls == "ignore"
        assert definitions.policies()["Careful"].gap == "fail"
        definitions.define("feed", "orders", {"files": "x", "policy": "Careful"})
        with pytest.raises(InvalidError, match="in use"):
            definitions.drop_policy("Careful")
        assert definitions.drop("orders") == ["feed.orders"]
        assert definitions.drop_policy("Careful") == ["policy.Careful"]


def test_what_cannot_be_written_down_is_refused(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        definitions = lakebed.FeedDefinitions(lake)
        for said in ({"files": object()}, {"files": b"x"}, {"files": "x", "decoder": {1: {2}}}):
            with pytest.raises(InvalidError, match=r"feed\.orders"):
                definitions.define("feed", "orders", said)
        with pytest.raises(InvalidError, match="did you mean 'feed'"):
            definitions.define("fed", "orders", {"files": "x"})
