from benchmarks.__main__ import found


def test_every_benchmark_is_found_where_spark_is_not_on_the_path() -> None:
    names = set(found())
    assert {
        "amazon",
        "bounds",
        "bulk_import",
        "functions",
        "ingest",
        "lookup",
        "merge",
        "state",
    } <= names
    assert "figures" not in names
