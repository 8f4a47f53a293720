"""The drawings of docs/protocol.md. `make docs` writes them."""

from __future__ import annotations

from docs.deployment_drawing import deployment
from docs.drawings import Note, Send, Sheet, lanes


def protocol_drawings() -> dict[str, str]:
    """Return each drawing by its file's name."""
    return {
        "protocol-commit.svg": commit(),
        "protocol-floor.svg": floor(),
        "protocol-split.svg": split(),
        "protocol-deployment.svg": deployment(),
    }


def commit() -> str:
    """Return how one commit goes, and how it may end."""
    sheet = Sheet("One commit: five steps, and every way in which it may end")
    left, wide, right, end = 30, 310, 405, 350
    read = sheet.box(left, 34, wide, "1  read the log to its end,\napply it to the state")
    known = sheet.box(left, 104, wide, "2  ask the state for the commit's id (H1)")
    check = sheet.box(left, 184, wide, "3  check it against the state (H4)")
    append = sheet.box(
        left,
        254,
        wide,
        "4  append entry n + 1, if that number is free\nand entry n is the one applied (H10, H33)",
    )
    again = sheet.box(
        left, 340, wide, "5  the number was taken, the store was busy,\nor no answer came (H2, H3)"
    )
    late = sheet.box(left, 420, wide, "60 seconds are over (H8)")
    for above, below in ((read, known), (known, check), (check, append), (append, again)):
        sheet.arrow(above.bottom, below.top)
    sheet.arrow(again.bottom, late.top)
    sheet.arrow(again.left, (12, again.left[1]), (12, read.left[1]), read.left)
    sheet.text(18, 326, "again", "quiet")
    found = sheet.box(right, 90, end, "there: success, with its old number", "good")
    other = sheet.box(right, 128, end, "there, for another request: JobIdReusedError (H5)", "bad")
    refused = sheet.box(
        right,
        174,
        end,
        "refused: ConflictError, FencedError, InvalidError\nno try of it is in the log",
        "bad",
    )
    landed = sheet.box(right, 242, end, "written: success, with number n + 1", "good")
    behind = sheet.box(right, 280, end, "entry n is another: LogRolledBackError (H34)", "bad")
    unknown = sheet.box(
        right,
        388,
        end,
        "a try has no answer yet: UnknownOutcomeError\nsend it again with the same id",
        "quiet",
    )
    nothing = sheet.box(
        right,
        446,
        end,
        "all tries are accounted for: ConflictError,\nUnavailableError; nothing was written",
        "bad",
    )
    for source, target in (
        (known, found),
        (known, other),
        (check, refused),
        (append, landed),
        (append, behind),
        (late, unknown),
        (late, nothing),
    ):
        sheet.arrow(source.right, target.left)
    return sheet.svg()


def floor() -> str:
    """Return why a sweep never deletes what may still be committed."""
    return lanes(
        "Base and floor: a writer sleeps for three days, and a sweep goes by",
        ("writer", "transaction log", "bucket", "sweeper"),
        (
            Send(1, 0, "entry 41 is the last: base 41"),
            Send(0, 2, "PUT file 41-JOB-RUN", "good"),
            Note(0, "stalls for three days", "quiet"),
            Note(1, "others commit 42 to 90", "plain"),
            Send(3, 1, "entry 91: RaiseFloor(88), 48 hours old"),
            Send(1, 3, "state at 91: floor 88"),
            Note(3, "lists files with a base\nbelow 88 that the state\nat 91 does not know"),
            Send(3, 2, "DELETE\n41-JOB-RUN", "bad"),
            Send(0, 1, "commit, base 41"),
            Send(1, 0, "FencedError: 41 < 88", "bad"),
            Note(0, "runs the job again:\nbase 91, new names", "good"),
        ),
    )


def split() -> str:
    """Return what becomes of a commit to a leaf that is split before it lands."""
    return lanes(
        "A late commit meets a split: nobody is refused, no row is lost",
        ("ingest", "transaction log", "splitter"),
        (
            Send(1, 0, "state at 12: leaf 3 holds keys a to z"),
            Note(0, "writes file F, keys c to t,\nfor leaf 3, base 12", width=190),
            Send(2, 1, "entry 13: Split(leaf 3 at m)", "good"),
            Note(
                1, "leaf 3 becomes 4 [a, m) and 5 [m, z);\nreferences, claims move down", width=290
            ),
            Send(0, 1, "entry 14: AddFiles(F to partition 3)", "good"),
            Note(1, "check: partition 3 is known\napply: F enters 4 and 5, in part", width=290),
            Note(
                1,
                "object F is not touched: two references,\neach clipped to its leaf",
                "quiet",
                290,
            ),
            Send(1, 0, "success: 14", "good"),
        ),
    )
