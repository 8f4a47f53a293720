"""`lakebed feed apply` and what follows it, as people use it."""

from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell

TEXT = """
[feed.orders]
source = {{ files = "{folder}/*.log" }}
decoder = {{ format = "json" }}
[connection.eu]
feed = "orders"
table = "trips"
columns = {{ id = "id", region = "region" }}
where = "region = 'EU'"
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "trips", "--row-key", "id:string", "--value", "region:string?")
    return shell


def file(shell: Shell, text: str = TEXT, name: str = "feeds.toml") -> str:
    path = shell.folder / name
    path.write_text(text.format(folder=shell.folder), "utf-8")
    return str(path)


def test_feeds_are_applied_listed_started_stopped_and_dropped(shell: Shell) -> None:
    assert shell.ok("feed", "list") == "no feed yet: `lakebed feed apply FILE`\n"
    dry = shell.ok("feed", "apply", file(shell), "--dry-run")
    assert dry == (
        "feed orders would be created, 2 settings\nconnection eu would be created, 4 settings\n"
    )
    assert shell.json("feed", "list") == []
    assert shell.ok("feed", "apply", file(shell)) == (
        "feed orders created, version 2, 2 settings\nconnection eu created, version 2, 4 settings\n"
    )
    assert shell.ok("feed", "list").split() == ["FEED", "STATE", "WHY", "orders", "stopped"]
    assert shell.ok("feed", "start", "orders") == "orders is to be running\n"
    said = shell.ok("feed", "describe", "orders")
    assert "feed      orders, version 2, running" in said
    assert "connects  eu to trips, policy FaultTolerant, where region = 'EU'" in said
    described = shell.json("feed", "describe", "orders")
    assert described["connections"][0]["policy"]["errors_in_row_max"] == 100
    code, error = shell.refused("feed", "start", "orders")
    assert (code, error["message"]) == (2, "a feed that is running cannot start")
    assert error["hint"] == "it may stop or suspend"
    shell.ok("feed", "suspend", "orders")
    shell.ok("feed", "resume", "orders")
    code, error = shell.refused("feed", "drop", "orders", "--cascade")
    assert "not stopped" in str(error["message"])
    shell.ok("feed", "stop", "orders")
    code, error = shell.refused("feed", "drop", "orders")
    assert "has connections" in str(error["message"])
    assert shell.ok("feed", "drop", "orders", "--cascade") == (
        "dropped connection.eu\ndropped feed.orders\n"
    )


def test_a_change_is_shown_field_by_field(shell: Shell) -> None:
    shell.ok("feed", "apply", file(shell))
    changed = file(shell, TEXT.replace("'EU'", "'US'"), "changed.toml")
    assert shell.ok("feed", "apply", changed) == (
        "feed orders kept, version 2\n"
        "connection eu changed, version 3\n"
        "  connection.eu.where: \"region = 'EU'\" -> \"region = 'US'\"\n"
    )
    (kept, change) = shell.json("feed", "apply", file(shell))
    assert (kept["action"], change["action"], change["version"]) == ("keep", "change", 4)
    assert shell.ok("feed", "disconnect", "eu") == "dropped connection.eu\n"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("trips", "trip"), "did you mean 'trips'"),
        (('id = "id"', 'ids = "id"'), "did you mean 'id'"),
        (("region = 'EU'", "regio = 'EU'"), "did you mean 'region'"),
        (("json", "jsn"), ""),
        (("where", "whre"), "did you mean 'where'"),
        (('feed = "orders"', 'feed = "order"'), "did you mean 'orders'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_nearest_and_nothing_changes(
    shell: Shell, change: tuple[str, str], says: str
) -> None:
    code, error = shell.refused("feed", "apply", file(shell, TEXT.replace(*change)))
    assert code == 2
    assert says in f"{error['hint']}"
    at = "feed.orders.decoder" if not says else "connection.eu"
    assert at in str(error["facts"])
    assert shell.json("feed", "list") == []


def test_restored_definitions_are_applied_above_what_a_table_knows(shell: Shell) -> None:
    shell.ok("feed", "apply", file(shell))
    said = shell.ok("feed", "apply", file(shell), "--above", "40")
    assert said == "feed orders changed, version 41\nconnection eu changed, version 41\n"


def test_files_are_applied_together_and_one_that_is_not_there_is_named(shell: Shell) -> None:
    first = file(shell, '[policy.Mine]\nextends = "Strict"', "policies.toml")
    shell.ok("feed", "apply", first, file(shell, TEXT + 'policy = "Mine"'))
    assert shell.json("feed", "describe", "orders")["connections"][0]["policy"]["gap"] == "fail"
    code, error = shell.refused("feed", "apply", first, "gone.toml")
    assert code == 2
    assert "gone.toml" in str(error["facts"])
    code, error = shell.refused("feed", "apply", first, file(shell, "[policy.Mine]", "twice.toml"))
    assert "two files define the same" in str(error["message"])


def test_policies_are_listed_created_and_dropped(shell: Shell) -> None:
    listed = shell.ok("policy", "list")
    assert 'Throttle       on_congestion=["throttle","backpressure"]' in listed
    assert "FaultTolerant  -" in listed
    said = shell.ok(
        "policy", "create", "Careful", "--extends", "Strict",
        "--set", "errors_in_row_max=3", "--set", "nulls=ignore",
        "--set", 'on_congestion=["discard", "backpressure"]',
    )  # fmt: skip
    assert said == "policy Careful created, version 1\n"
    found = shell.json("policy", "list", "Careful")
    assert (found["errors_in_row_max"], found["nulls"], found["gap"]) == (3, "ignore", "fail")
    assert found["on_congestion"] == ["discard", "backpressure"]
    assert "gap " in shell.ok("policy", "list", "Careful")
    assert "kept" in shell.ok(
        "policy", "create", "Careful", "--extends", "Strict",
        "--set", "errors_in_row_max=3", "--set", "nulls=ignore",
        "--set", 'on_congestion=["discard", "backpressure"]',
    )  # fmt: skip
    shell.ok("feed", "apply", file(shell, TEXT + 'policy = "Careful"'))
    _, error = shell.refused("policy", "drop", "Careful")
    assert "in use" in str(error["message"])
    shell.ok("feed", "disconnect", "eu")
    assert shell.ok("policy", "drop", "Careful") == "dropped policy.Careful\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("create", "P", "--set", "nulls"), "write NAME=VALUE"),
        (("create", "P", "--set", "nulls=a", "--set", "nulls=b"), "set it once"),
        (("create", "P", "--set", "null=a"), "did you mean 'nulls'"),
        (("create", "P", "--set", "nulls=a"), "`write`, `ignore`, `fail`"),
        (("create", "P", "--extends", "Q"), "Basic"),
        (("create", "Basic"), "give it another name"),
        (("drop", "Basic"), "every lake has"),
        (("list", "Basik"), "did you mean 'Basic'"),
    ],
)
def test_what_is_no_policy_is_refused(shell: Shell, words: tuple[str, ...], says: str) -> None:
    code, error = shell.refused("policy", *words)
    assert code == 2
    assert says in str(error["hint"])
