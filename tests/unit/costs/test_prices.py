"""A file of prices: what comes with the library is whole, and a user's is held to it."""

from pathlib import Path

import pytest

from lakebed.costs.amounts import AMOUNTS, Amounts
from lakebed.costs.prices import packaged_prices, packaged_text, prices_in
from lakebed.errors import InvalidError


def test_everything_that_is_counted_has_a_price_and_the_other_way_round() -> None:
    assert set(packaged_prices().prices) == set(AMOUNTS)


def test_amounts_are_added_multiplied_and_priced_thing_by_thing() -> None:
    prices = packaged_prices()
    both = Amounts(s3_put=2) + Amounts(s3_put=1, alarm_month=1)
    assert both == Amounts(s3_put=3, alarm_month=1)
    assert both * 2 == Amounts(s3_put=6, alarm_month=2)
    wanted = 3 * prices.prices["s3_put"] + prices.prices["alarm_month"]
    assert both.dollars(prices) == pytest.approx(wanted)


def test_a_file_of_ones_own_replaces_the_prices(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(packaged_text().replace("s3_put = 0.000005", "s3_put = 7.0"))
    assert Amounts(s3_put=1).dollars(prices_in(file)) == 7


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("alarm_month = 0.10\n", "", "prices are missing"),
        ("alarm_month", "alarms_month", "did you mean 'alarm_month'"),
        ("alarm_month = 0.10", "alarm_month = -1.0", "not a price"),
        ("alarm_month = 0.10", "alarm_month = inf", "not a price"),
        ("alarm_month = 0.10", "alarm_month = nan", "not a price"),
        ("alarm_month = 0.10", 'alarm_month = "much"', "not a file of prices"),
        ('date = "2026-11-01"', 'date = "lately"', "not a file of prices"),
        ('region = "us-east-1"', "region =", "not a file of prices"),
        ('region = "us-east-1"', 'region = "x"\ncurrency = "EUR"', "not a file of prices"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    assert before in packaged_text()
    file = tmp_path / "mine.toml"
    file.write_text(packaged_text().replace(before, after, 1))
    with pytest.raises(InvalidError, match=words):
        prices_in(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for name in ("missing", "bytes", "."):
        with pytest.raises(InvalidError, match="cannot be read"):
            prices_in(tmp_path / name)
