"""The page of figures, with its pictures, from `benchmarks/latest.jsonl`. `make docs` writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.figure_pages.pictures import Bar, picture
from benchmarks.figures import Figure, rounded
from benchmarks.shapes import SHAPES

LATEST = Path(__file__).parents[1] / "latest.jsonl"
GROUPS = {
    "merge": (
        "Merge",
        "Ten sorted files become one, beside DataFusion, and pyarrow decoding and encoding them.",
    ),
    "ingest": (
        "Ingest",
        "Ten unsorted files become sorted ones in 16 leaves, beside Polars' partitioned sink.",
    ),
    "bulk_import": (
        "Bulk import",
        "The same by Spark on two cores, beside Spark's own repartition, sort and writer.",
    ),
    "lookup": ("Lookup", "Random keys that exist, all columns, from an S3 server with latency."),
    "scan": ("Scan", "Ranges of keys, beside reading the same bytes raw."),
    "export": ("Export", "One worker writes every row to files, beside reading these rows."),
    "where": ("Predicates on keys", "The same lookups by `where` as by `keys`, from local files."),
    "query": ("Query", "Every row of a table of 20,000 leaves of three rows, which share a file."),
    "state": ("State", "The state of a table with a million files."),
    "tables": ("Many tables", "One process ingests into 2,000 tables and queries each."),
    "batch": (
        "Batches",
        "Small files are submitted and put into batches, with SQLite and against MiniStack.",
    ),
    "declared": ("Declared tables", "A process sees that 200 tables are as their files say."),
    "aws": (
        "AWS",
        "Log at 5 ms an answer, objects at 90 MB/s a connection, by servers of our own.",
    ),
    "image": ("Image", "A process with nothing but its image: imports, kernels, one merge."),
    "lambda": (
        "Functions",
        "A process that sees nothing but its bundle; imports by processor time.",
    ),
    "bundle": ("Bundles", "Unpacked, for ARM."),
    "synth": ("Synthesis", "`app.py` by the clock, packages of bundles being there."),
    "upgrade": ("Upgrade", "This release replaces the one before under load, in the local cloud."),
}
"""Title, and what is measured, in the order of the page. Others follow by name."""


class Drawing(NamedTuple):
    """A picture: its file, its title, and which figures it shows, labelled by the pattern's groups.

    peer: what the line at 1 is.
    """

    file: str
    group: str
    title: str
    pattern: str
    peer: str | None = None


DRAWINGS = (
    Drawing(
        "figures-merge.svg",
        "merge",
        "Rows merged per second of one core, DataFusion = 1",
        r"merge\.(\w+)\.ratio_to_datafusion",
        "DataFusion",
    ),
    Drawing(
        "figures-merge-two-workers.svg",
        "merge",
        "Merge on two cores by the clock, DataFusion = 1",
        r"merge\.(\w+)\.two_workers_wall_ratio_to_datafusion",
        "DataFusion",
    ),
    Drawing(
        "figures-merge-memory.svg",
        "merge",
        "Peak memory of a merging process, MiB",
        r"merge\.(\w+)\.peak_mib",
    ),
    Drawing(
        "figures-ingest.svg",
        "ingest",
        "Rows sorted into 16 leaves per second of one core, Polars = 1",
        r"ingest\.(\w+)\.ratio_to_polars",
        "Polars",
    ),
    Drawing(
        "figures-lookup.svg",
        "lookup",
        "Lookups: median time of others over ours",
        r"lookup\.(\w+)\.ratio_to_(\w+)",
        "Lakebed",
    ),
)


def figure_pages(figures: Sequence[Figure]) -> dict[str, str]:
    """Return the page and its pictures by their files' names."""
    drawn = {d.file: drawing for d in DRAWINGS if (drawing := _drawing(d, figures))}
    lines = [
        "# Figures",
        "",
        "Made by `make docs` from `benchmarks/latest.jsonl`, which `make bench` writes.",
        "",
        "What is measured, and how: [benchmarks](../design/benchmarks.md). A bar's tick, and the",
        "figure in parentheses, is the aim. **Bold**, and amber, is a missed one.",
    ]
    groups = dict.fromkeys([*GROUPS, *sorted(f.name.partition(".")[0] for f in figures)])
    for group in groups:
        inside = [f for f in figures if f.name.partition(".")[0] == group]
        if inside:
            lines += _section(group, inside, [d for d in DRAWINGS if d.file in drawn])
    return {"figures.md": "\n".join(lines) + "\n", **drawn}


def latest() -> list[Figure]:
    """Return the figures that were kept."""
    lines = LATEST.read_text(encoding="utf-8").splitlines() if LATEST.exists() else []
    return [Figure(**json.loads(line)) for line in lines]


def keep(figures: Iterable[Figure]) -> None:
    """Write figures down; those of the same name are replaced."""
    kept = {f.name: f for f in [*latest(), *figures]}
    lines = []
    for _, f in sorted(kept.items()):
        said = {"name": f.name, "value": float(f"{f.value:.4g}"), "unit": f.unit}
        if f.aim is not None:
            said |= {"aim": f.aim, "better": f.better}
        lines.append(json.dumps(said) + "\n")
    LATEST.write_text("".join(lines), encoding="utf-8")


def _section(group: str, figures: Sequence[Figure], drawings: Iterable[Drawing]) -> Iterator[str]:
    title, about = GROUPS.get(group, (group.replace("_", " ").capitalize(), ""))
    yield from ["", f"## {title}", *(["", about] if about else [])]
    for drawing in drawings:
        if drawing.group == group:
            yield from ["", f"![{drawing.title}]({drawing.file})"]
    of_shapes = {f.name: f for f in figures if _shape(f.name) is not None}
    if of_shapes:
        yield from ["", *_by_shape(group, of_shapes)]
    others = [f for f in figures if f.name not in of_shapes]
    if others:
        yield from ["", "| Figure | Value | Unit |", "|---|---|---|"]
        yield from (f"| `{f.name}` | {_value(f)} | {f.unit} |" for f in others)


def _by_shape(group: str, figures: dict[str, Figure]) -> Iterator[str]:
    """Yield a table: a column for each shape, a row for each kind of figure."""
    shapes = [s for s in SHAPES if any(_shape(name) == s for name in figures)]
    kinds = dict.fromkeys(name.split(".", 2)[2] for name in figures)
    yield f"| `{group}.SHAPE.` | {' | '.join(shapes)} | Unit |"
    yield "|---" * (len(shapes) + 2) + "|"
    for kind in sorted(kinds, key=_rank):
        found = [figures.get(f"{group}.{shape}.{kind}") for shape in shapes]
        unit = next(f.unit for f in found if f is not None)
        cells = ["" if f is None else _value(f) for f in found]
        yield f"| `{kind}` | {' | '.join(cells)} | {unit} |"


def _rank(kind: str) -> tuple[bool, bool, str]:
    """Ratios first, then what is ours, then what is others'."""
    return not kind.startswith("ratio"), kind.startswith(("datafusion", "polars", "rewrite")), kind


def _shape(name: str) -> str | None:
    parts = name.split(".", 2)
    return parts[1] if len(parts) == 3 and parts[1] in SHAPES else None


def _value(f: Figure) -> str:
    value = rounded(f.value) if f.is_reached else f"**{rounded(f.value)}**"
    if f.aim is None:
        return value
    sign = "≤" if f.better == "lower" else "≥"
    return f"{value} ({sign} {f.aim:,.10g})"


def _drawing(drawing: Drawing, figures: Sequence[Figure]) -> str | None:
    """Return a picture; None when there is nothing to show."""
    named = [(m.groups(), f) for f in figures if (m := re.fullmatch(drawing.pattern, f.name))]
    order = [*SHAPES, *sorted(groups[0] for groups, _ in named)]
    named.sort(key=lambda one: (order.index(one[0][0]), one[0]))
    bars = [
        Bar(" ".join(groups), f.value, rounded(f.value), f.aim, f.is_reached) for groups, f in named
    ]
    return picture(drawing.title, bars, drawing.peer) if bars else None
