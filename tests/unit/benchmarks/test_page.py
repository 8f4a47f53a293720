import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.figure_pages import page
from benchmarks.figure_pages.page import figure_pages
from benchmarks.figure_pages.pictures import Bar, picture
from benchmarks.figures import Figure

FIGURES = [
    Figure("ingest.sys.ratio_to_polars", 1.62, "", 1.5, "higher"),
    Figure("merge.narrow.ratio_to_datafusion", 1.2, "", 1.5, "higher"),
    Figure("merge.sleeper.peak_mib", 248.0, "MiB", 350),
    Figure("merge.sleeper.ratio_to_datafusion", 1.75, "", 1.5, "higher"),
    Figure("odd_one", 3.0, "<&>"),
    Figure("state.open_seconds", 0.5, "s", 1.0),
]
SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_has_each_figure_with_its_aim_and_marks_what_missed_it() -> None:
    text = figure_pages(FIGURES)["figures.md"]
    assert "| `merge.SHAPE.` | sleeper | narrow | Unit |" in text
    assert "| `ratio_to_datafusion` | 1.75 (≥ 1.5) | **1.20** (≥ 1.5) |  |" in text
    assert "| `peak_mib` | 248 (≤ 350) |  | MiB |" in text
    assert "| `state.open_seconds` | 0.5000 (≤ 1) | s |" in text
    assert "| `odd_one` | 3.00 | <&> |" in text
    assert text.index("## Merge") < text.index("## State") < text.index("## Odd one")


def test_a_picture_is_shown_where_there_is_something_to_see() -> None:
    pages = figure_pages(FIGURES)
    shown = set(re.findall(r"\]\((figures-[\w-]+\.svg)\)", pages["figures.md"]))
    assert shown == set(pages) - {"figures.md"}
    assert shown == {"figures-merge.svg", "figures-merge-memory.svg", "figures-ingest.svg"}


def test_lookups_are_labelled_by_table_and_peer() -> None:
    figures = [Figure(f"lookup.{table}.ratio_to_duckdb", 9.0, "") for table in ("one_file", "sys")]
    svg = ElementTree.fromstring(figure_pages(figures)["figures-lookup.svg"])
    labels = [text.text for text in svg.findall(f"{SVG}text") if "text-anchor" in text.attrib]
    assert labels == ["sys duckdb", "one_file duckdb", "Lakebed"]


def test_bars_are_as_long_as_their_values_and_stay_inside() -> None:
    bars = [Bar("a<b", 2.0, "2.00", 1.5, True), Bar("c", 0.5, "0.50", 3.0, False)]
    svg = ElementTree.fromstring(picture("bars & ticks", bars, "peer"))
    long, short = svg.findall(f"{SVG}rect")
    assert float(long.attrib["width"]) == pytest.approx(4 * float(short.attrib["width"]), abs=0.5)
    assert (long.attrib["class"], short.attrib["class"]) == ("reached", "missed")
    width, height = (float(svg.attrib[side]) for side in ("width", "height"))
    for part in svg.iter():
        assert float(part.attrib.get("x", part.attrib.get("x2", 0))) < width
        assert float(part.attrib.get("y", part.attrib.get("y2", 0))) < height
    assert "a<b" in [text.text for text in svg.findall(f"{SVG}text")]


def test_kept_figures_come_back_with_their_aims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "LATEST", tmp_path / "latest.jsonl")
    page.keep(FIGURES)
    assert page.latest() == FIGURES
    page.keep([Figure("odd_one", 4.00049, "s", 5)])
    assert page.latest() == [*FIGURES[:4], Figure("odd_one", 4.0, "s", 5), FIGURES[5]]
    assert json.loads(page.LATEST.read_text().splitlines()[4])["aim"] == 5
