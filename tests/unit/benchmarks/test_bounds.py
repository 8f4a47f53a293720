from benchmarks import bounds


def test_a_tiny_run_tells_what_much_takes() -> None:
    figures = {figure.name: figure for figure in bounds.run(tables=3, leaves=40)}
    assert list(figures) == [
        "ingest.small.peak_mib",
        "query.leaves_40.seconds",
        "query.leaves_40.cpu_seconds",
        "query.leaves_40.peak_mib",
        "tables.3.descriptors",
        "tables.3.peak_mib",
        "tables.3.ingest_cpu_ms",
        "tables.3.query_cpu_ms",
    ]
    assert 20 <= figures["tables.3.descriptors"].value <= 100
    assert all(figure.value > 0 for figure in figures.values())
