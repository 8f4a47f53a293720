"""Tiny runs of the benchmarks that read from a server, and the server itself."""

import time
from pathlib import Path

import pytest

from benchmarks import inputs, lookup, scan
from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.served_tables import FILES, made, objects_of, served
from benchmarks.servers.slow_s3 import serving
from benchmarks.shapes import SYS
from lakebed.errors import ObjectMissingError

ROWS = 20_000


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "CACHE", tmp_path)


def test_the_server_is_slow_gives_ranges_and_counts(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    root = objects_of(folder)
    root.mkdir(parents=True)
    body = bytes(range(256)) * 4_000
    writer = ServedObjects(root, None).create("a/b")
    writer.write(body)
    writer.finish()
    with serving(folder, latency_ms=40, mb_per_second=10) as server:
        objects = ServedObjects(root, server)
        begun = time.perf_counter()
        ranges = [(0, 10), (500_000, 1_000_000)]
        assert objects.read("a/b", ranges) == [body[start:end] for start, end in ranges]
        assert time.perf_counter() - begun >= 0.04 + 0.05
        assert server.count() == (2, 500_010)
        assert server.count() == (0, 0)
        with pytest.raises(ObjectMissingError):
            objects.read("a/c", [(0, 1)])


def test_a_table_has_the_files_it_should_have_and_a_key_takes_one_round(tmp_path: Path) -> None:
    with served(made(SYS, ROWS)) as table:
        assert len(table.paths) == FILES
        first = table.keys[0]
        other = next(key for key in table.keys[1:] if key[0] == first[0])  # in the same leaf
        cold = table.table.explain(keys=[first])
        warm = table.table.explain(keys=[other])
        assert (cold.rows, warm.rows) == (1, 1)
        assert cold.rounds <= 2
        assert warm.rounds <= 1
        asked = table.server.count()
        assert asked.bytes == cold.bytes + warm.bytes
        assert asked.requests == cold.requests + warm.requests


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sys", "wide", "one_file"])
def test_a_small_benchmark_of_lookups_gives_its_figures(name: str) -> None:
    figures = {f.name: f for f in lookup.run(ROWS, 1, [name], lookups=20, peer_lookups=3)}
    prefix = "lookup" if name == "sys" else f"lookup.{name}"
    assert figures[f"{prefix}.dependent_reads"].value <= 1
    assert figures[f"{prefix}.absent_requests"].value == 0
    assert figures[f"lookup.{name}.kib"].value >= 0
    for peer in ("datafusion", "polars", "pyarrow"):
        assert figures[f"{prefix}.ratio_to_{peer}"].value > 0
    for of_sys in ("lookup.cold_process_ms", "where.key.ratio_to_keys"):
        assert (of_sys in figures) == (name == "sys")


@pytest.mark.slow
def test_a_small_benchmark_of_scans_gives_its_figures() -> None:
    figures = {f.name: f.value for f in scan.run(ROWS, 1)}
    assert figures["scan.ratio_to_raw"] > 0
    assert figures["scan.rows_per_second"] > 0
