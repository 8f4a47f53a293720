import pytest

pytest.importorskip("confluent_kafka")


@pytest.mark.slow
def test_a_tiny_run_of_feeds_takes_each_record_once() -> None:
    from benchmarks.feeding import one_core

    figures = {figure.name: figure.value for figure in one_core.run(50, rounds=1)}
    whole = {"records_per_core_second", "bytes_of_record", "ratio_to_consume", "peak_mib"}
    parts = {f"part.{name}_us" for name in ("read", "decode", "rows", "stage", "round", "rest")}
    wanted = {f"feed.kafka_json.{name}" for name in whole | parts}
    assert wanted <= figures.keys()
    assert all(figures[name] > 0 for name in wanted)
