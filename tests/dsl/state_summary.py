"""A state as a small text that tests compare."""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.model.files import FileReference
from lakebed.model.names import FileName, JobId, PartitionId
from lakebed.statestore.table_state.state import TableState


def summary_of(
    state: TableState, leaves: Mapping[PartitionId, str], files: Mapping[FileName, str]
) -> str:
    """Return leaves in key order with files, rows ("about" when not exact) and claims; garbage.

    leaves, files: what the story calls them; others show as numbers and hexadecimal digits.
    """
    lines = []
    for leaf in state.tree().leaves():
        lines.append(leaves.get(leaf, f"leaf {leaf}"))
        named = [
            (files.get(r.file.name, r.file.name.hex()), r, j) for r, j in state.references(leaf)
        ]
        lines += _lines(sorted(named, key=lambda row: row[0]))
    garbage = sorted(files.get(g.file, g.file.hex()) for g in state.garbage())
    return "\n".join([*lines, *(["garbage"] if garbage else []), *(f"  {g}" for g in garbage)])


def _lines(rows: list[tuple[str, FileReference, JobId | None]]) -> list[str]:
    texts = [f"{'' if r.exact else 'about '}{r.rows} rows" for _, r, _ in rows]
    width = max((len(name) for name, _, _ in rows), default=0)
    wide = max(map(len, texts), default=0)
    return [
        f"  {name:<{width}}  {text:>{wide}}  {job or ''}".rstrip()
        for (name, _, job), text in zip(rows, texts, strict=True)
    ]
