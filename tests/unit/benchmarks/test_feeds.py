import pytest

pytest.importorskip("confluent_kafka")


@pytest.mark.slow
def test_a_tiny_run_of_feeds_takes_each_record_once() -> None:
    from benchmarks import feeds

    figures = {figure.name: figure.value for figure in feeds.run(50, rounds=1)}
    assert list(figures) == [
        "feed.kafka_json.records_per_core_second",
        "feed.kafka_json.bytes_of_record",
        "feed.kafka_json.ratio_to_consume",
        "feed.kafka_json.peak_mib",
    ]
    assert all(value > 0 for value in figures.values())
