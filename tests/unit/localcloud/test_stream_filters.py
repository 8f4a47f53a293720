"""Filters of streams let through what Lambda lets through, as far as they are known."""

import pytest

from lakebed.errors import InvalidError
from localcloud.templates.stream_filters import check_filter, matches

PATTERN = {
    "eventName": ["INSERT", "MODIFY"],
    "dynamodb": {
        "Keys": {"pk": {"S": [{"prefix": "job#"}]}, "sk": {"S": ["newest"]}},
        "NewImage": {"listed": {"S": [{"suffix": "#committed"}, {"suffix": "#rejected"}]}},
    },
}


def record(name: str = "INSERT", pk: str = "job#t#j", sk: str = "newest", listed: str = "") -> dict:
    image = {"listed": {"S": listed}} if listed else {}
    keys = {"pk": {"S": pk}, "sk": {"S": sk}}
    return {"eventName": name, "dynamodb": {"Keys": keys, "NewImage": image}}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (record(listed="t#committed"), True),
        (record("MODIFY", listed="t#rejected"), True),
        (record("REMOVE", listed="t#rejected"), False),
        (record(listed="t#started"), False),
        (record(), False),
        (record(pk="task#1", listed="t#committed"), False),
        (record(sk="at#1", listed="t#committed"), False),
        ({}, False),
    ],
)
def test_a_record_is_wanted_by_its_name_keys_and_image(found: dict, wanted: bool) -> None:
    assert matches(PATTERN, found) == wanted


def test_a_condition_that_is_not_known_is_refused() -> None:
    check_filter(PATTERN)
    with pytest.raises(InvalidError, match="not known"):
        check_filter({"dynamodb": {"Keys": {"pk": {"N": [{"numeric": [">", 1]}]}}}})
