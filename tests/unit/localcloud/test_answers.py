import json

import pytest

from localcloud.runner.event_sources import failed_messages
from localcloud.runner.metrics import Datum, embedded_metrics
from localcloud.runner.workers import Outcome

BATCH = [{"MessageId": "1"}, {"MessageId": "2"}]


@pytest.mark.parametrize(
    ("value", "failed"),
    [
        (None, set()),
        ({}, set()),
        ({"batchItemFailures": []}, set()),
        ({"batchItemFailures": None}, set()),
        ({"batchItemFailures": [{"itemIdentifier": "2"}]}, {"2"}),
        ({"batchItemFailures": [{"itemIdentifier": "7"}]}, {"1", "2"}),
        ({"batchItemFailures": [{"itemIdentifier": ""}]}, {"1", "2"}),
        ({"batchItemFailures": [{"identifier": "1"}]}, {"1", "2"}),
        ({"batchItemFailures": ["1"]}, {"1", "2"}),
        ("done", {"1", "2"}),
    ],
    ids=[
        "none",
        "empty",
        "no failures",
        "failures of none",
        "one of the batch",
        "one of another batch",
        "without a name",
        "under another key",
        "text",
        "no object",
    ],
)
def test_an_answer_says_which_messages_failed(value: object, failed: set[str]) -> None:
    assert failed_messages(BATCH, Outcome(value), reports=True) == failed


def test_who_does_not_report_failures_has_none_unless_it_raises() -> None:
    named = {"batchItemFailures": [{"itemIdentifier": "2"}]}
    assert failed_messages(BATCH, Outcome(named), reports=False) == set()
    error = Outcome(error={"errorType": "ValueError"})
    assert failed_messages(BATCH, error, reports=False) == {"1", "2"}


def test_metrics_are_read_out_of_what_a_function_prints() -> None:
    said = {
        "_aws": {
            "CloudWatchMetrics": [
                {
                    "Namespace": "Lakebed",
                    "Dimensions": [["instance"], ["table", "instance"]],
                    "Metrics": [{"Name": "jobs", "Unit": "Count"}, {"Name": "seconds"}],
                }
            ]
        },
        "instance": "dev",
        "table": "t1",
        "jobs": [2, 3],
        "seconds": 0.5,
    }
    lines = [b"plain", b'{"_aws": 1}', b'{"_aws": {', json.dumps(said).encode()]
    one, two = (("instance", "dev"),), (("instance", "dev"), ("table", "t1"))
    assert list(embedded_metrics(b"\n".join(lines))) == [
        Datum("Lakebed", "jobs", dimensions, value, unit) if unit else
        Datum("Lakebed", "seconds", dimensions, value)
        for dimensions in (one, two)
        for value, unit in ((2.0, "Count"), (3.0, "Count"), (0.5, ""))
    ]  # fmt: skip
