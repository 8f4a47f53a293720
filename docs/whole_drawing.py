"""The drawing of the whole, on the first screen of the README. `make docs` writes it."""

from __future__ import annotations

from docs.drawings import Sheet


def whole() -> str:
    """Return how rows come in, what works on them, and how they go out."""
    sheet = Sheet("Jobs write and merge files; one log says which of them are the table")
    rows = sheet.box(0, 48, 110, "rows,\nin any order", "quiet")
    ingest = sheet.box(150, 48, 190, "ingest\nsorts, writes a file a leaf")
    query = sheet.box(420, 48, 190, "query\nfinds leaves, merges files")
    out = sheet.box(650, 48, 110, "rows,\nin key order", "quiet")
    words = "object storage: sorted Parquet files, never changed"
    objects = sheet.box(150, 138, 460, words, "good")
    compaction = sheet.box(150, 212, 145, "compaction\nmany files become one")
    splitting = sheet.box(307, 212, 146, "splitting\nlarge leaves divide")
    garbage = sheet.box(465, 212, 145, "garbage collection\ndeletes the unused")
    log = sheet.box(
        150, 302, 460, "transaction log 1, 2, 3, ... and the state it leads to (SQLite)", "good"
    )
    sheet.arrow(rows.right, ingest.left)
    sheet.arrow(query.right, out.left)
    for source, target in (
        (ingest.bottom, (ingest.bottom[0], objects.y)),
        ((query.bottom[0], objects.y), query.bottom),
        ((compaction.top[0] - 12, objects.bottom[1]), (compaction.top[0] - 12, compaction.y)),
        ((compaction.top[0] + 12, compaction.y), (compaction.top[0] + 12, objects.bottom[1])),
        ((splitting.top[0], objects.bottom[1]), splitting.top),
        (garbage.top, (garbage.top[0], objects.bottom[1])),
    ):
        sheet.arrow(source, target)
    for worker in (compaction, splitting, garbage):
        sheet.arrow(worker.bottom, (worker.bottom[0], log.y))
    low, left, right = ingest.y + ingest.height - 10, 130, 630
    sheet.arrow((ingest.x, low), (left, low), (left, log.left[1]), log.left)
    sheet.arrow(log.right, (right, log.right[1]), (right, low), (query.x + query.width, low))
    sheet.text(left - 6, 190, "one commit", "quiet", "end")
    sheet.text(left - 6, 206, "for each job", "quiet", "end")
    sheet.text(right + 6, 190, "which files", "quiet")
    sheet.text(right + 6, 206, "hold which keys", "quiet")
    sheet.text(splitting.top[0] + 6, 196, "samples", "quiet")
    return sheet.svg()
