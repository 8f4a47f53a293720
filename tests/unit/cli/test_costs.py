"""`lakebed cost`: an estimate by the prices that come with Lakebed, or by a user's."""

from pathlib import Path

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
    assert after == 10 * before
    mine.write_text("region = 1")
    code, error = shell.refused("cost", "estimate", "--prices", str(mine))
    assert code == 2
    assert "not a file of prices" in error["message"]
