"""The emulator judges alarms by names of metrics alone."""

from localcloud.templates.running import emulated_metric_name


def test_metrics_of_two_queues_have_two_names() -> None:
    names = {
        emulated_metric_name("Visible", (("QueueName", queue),))
        for queue in ("ingest-dead", "query-dead")
    }
    assert names == {"Visible/QueueName=ingest-dead", "Visible/QueueName=query-dead"}


def test_dimensions_may_be_told_in_any_order_and_a_metric_may_have_none() -> None:
    assert emulated_metric_name("m", [("b", "2"), ("a", "1")]) == emulated_metric_name(
        "m", [("a", "1"), ("b", "2")]
    )
    assert emulated_metric_name("m", ()) == "m"
