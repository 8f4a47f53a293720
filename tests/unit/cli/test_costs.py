"""`lakebed cost`: an estimate by the prices that come with Lakebed, or by a user's."""

from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell


def test_an_estimate_is_told_and_no_lake_is_needed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    text = shell.ok("cost", "estimate")
    assert "an idle month" in text
    assert "a TB ingested and compacted to rest" in text
    told = shell.json("cost", "estimate")
    assert sum(told["idle_month"].values()) > told["paused_month"] > 0
    assert [one["job_gb"] for one in told["per_tb"]] == [1, 10, 100]
    assert not shell.lake.exists()


def test_prices_are_printed_changed_and_given(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    before = shell.json("cost", "estimate")["idle_month"]["alarms"]
    mine = tmp_path / "mine.toml"
    text = shell.ok("cost", "prices")
    mine.write_text(text.replace("alarm_month = 0.10", "alarm_month = 1.00"))
    after = shell.json("cost", "estimate", "--prices", str(mine))["idle_month"]["alarms"]
    assert after == pytest.approx(10 * before)
    mine.write_text("region = 1")
    code, error = shell.refused("cost", "estimate", "--prices", str(mine))
    assert code == 2
    assert "not a file of prices" in error["message"]


def given_work(shell: Shell, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,v\n" + "".join(f"k{n},{n}\n" for n in range(1_000)))
    shell.ok("table", "create", "trips", "--row-key", "id:string", "--value", "v:int64")
    shell.ok("ingest", "trips", str(rows))
    shell.ok("query", "trips", "--key", "k7")


def test_the_work_on_a_directory_is_counted_and_costs_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    given_work(shell, tmp_path)
    found = shell.json("cost", "--since", "1d")
    assert (found["by"], found["dollars"]) == ("table", 0)
    by_name = {line["name"]: line["counts"] for line in found["lines"]}
    assert by_name["trips"]["rows_in"] == 1_000
    assert by_name["trips"]["rows_read"] >= 1
    assert by_name["-"]["local_reads"] > 0
    of_table = shell.json("cost", "trips")
    kinds = {line["name"]: line["counts"] for line in of_table["lines"]}
    assert kinds["ingest"]["local_put"] == 1
    assert kinds["query"]["rows_read"] >= 1
    text = shell.ok("cost", "trips", "--by", "kind")
    assert "ingest" in text
    assert "together 0" in text


def test_costs_are_shown_where_no_command_is_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    given_work(shell, tmp_path)
    shown = [shell.json("cost", *words, "--by", "kind") for words in ((), ("show",))]
    names = [{line["name"] for line in one["lines"]} for one in shown]
    assert names[0] == names[1] >= {"ingest", "query"}
    shell.ok("table", "create", "prices", "--row-key", "id:string")
    assert shell.json("cost", "show", "prices")["by"] == "kind"
    assert "region" in shell.json("cost", "prices")


def test_what_is_no_time_or_table_is_refused(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    given_work(shell, tmp_path)
    for since in ("", "d", "7", "-1d", "0d", "401d", "1.5d", "7y", "\u0663d"):
        code, error = shell.refused("cost", "--since", since)
        assert (code, error["code"]) == (2, "invalid"), since
    code, error = shell.refused("cost", "trisp")
    assert (code, error["hint"]) == (2, "did you mean 'trips'?")


def test_a_directory_has_no_bill_and_a_bill_has_no_tables(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    given_work(shell, tmp_path)
    code, error = shell.refused("cost", "--compare")
    assert (code, error["message"]) == (2, "this lake has no bill")
    for words in (("trips",), ("--by", "kind")):
        code, error = shell.refused("cost", *words, "--compare")
        assert (code, error["message"]) == (2, "a bill is of the whole instance")


def test_a_load_of_a_table_is_estimated(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    words = ("cost", "estimate", "--rows-per-day", "1e9", "--queries-per-day", "1e6")
    found = shell.json(*words, "--row-bytes", "40")
    assert found["taken_in"] > 0
    assert found["merged"] > 0
    assert found["queries"] > 0
    assert "1,000,000,000 rows taken in" in shell.ok(*words)
    given_work(shell, tmp_path)
    own = shell.json(*words, "--own", "trips")
    assert (own["ratios"], own["taken_in"]) == ("own", 0)
    code, error = shell.refused("cost", "estimate", "--own", "trips")
    assert (code, error["message"]) == (2, "nothing is to be estimated of a table")
    code, _ = shell.refused("cost", "estimate", "--rows-per-day", "-1")
    assert code == 2
