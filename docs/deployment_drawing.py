"""The drawing of what is deployed on AWS, and who sends what to whom. `make docs` writes it."""

from __future__ import annotations

from docs.deployed_work import ALWAYS, BUCKETS, IF_ASKED, OUTSIDE, TABLES, DeployedWork
from docs.drawings import Box, Sheet

BEGINS, QUEUES, WORKS, STORES = (0, 185), (205, 140), (375, 200), (610, 150)
"""Where each column lies: its left edge and its width."""
BUS, GUTTER = 592, 195
"""The line that leads to all stores; the one from who sends to a queue of another row."""
GAP, MIDDLE = 10, 15
"""Between two rows; from the top of a row to its arrows, in the middle of a line of text."""
FOOTNOTE = (
    "Each queue has another one for dead letters. Tasks run in Fargate, or on machines of EC2."
)


def deployment() -> str:
    """Return what an instance on AWS is made of, and who sends what to whom."""
    sheet = Sheet("What is deployed, and who sends what to whom")
    for (x, width), name in (
        (BEGINS, "who begins"),
        (QUEUES, "queue (SQS)"),
        (WORKS, "who works"),
        (STORES, "stores"),
    ):
        sheet.text(x + width / 2, 42, name, "name", "middle")
    rows = _Rows(sheet, 56)
    for work in (OUTSIDE, *ALWAYS):
        rows.add(work)
    sheet.text(0, rows.y + 18, "only where a setting asks for it", "name")
    rows.y += 32
    for work in IF_ASKED:
        rows.add(work)
    rows.connect()
    sheet.text(0, rows.y + 16, FOOTNOTE, "quiet")
    _stores(sheet)
    return sheet.svg()


def _stores(sheet: Sheet) -> None:
    x, width = STORES
    for y, kind, parts in ((110, "DynamoDB", TABLES), (310, "S3", BUCKETS)):
        lines = (f"{name}: {what}" for name, what in parts.items())
        store = sheet.box(x, y, width, "\n".join([kind, "", *lines]), "good")
        sheet.arrow((BUS, store.left[1]), store.left)
    sheet.box(x, 490, width, "CloudWatch\n\nlogs, metrics\ndashboard\nalarms, sent by SNS", "quiet")


class _Rows:
    """Rows from top to bottom. y: where the next one begins."""

    def __init__(self, sheet: Sheet, y: float) -> None:
        self.y = y
        self._sheet, self._top, self._last = sheet, y, y
        self._queues: dict[str, Box] = {}
        self._senders: list[tuple[DeployedWork, Box, float]] = []

    def add(self, work: DeployedWork) -> None:
        """Draw a work with what leads to it."""
        line = self.y + MIDDLE
        works = _in_column(self._sheet, WORKS, self.y, work.name, work.does)
        if work.has_stores:
            self._sheet.arrow((works.x + works.width, line), (BUS, line), is_line=True)
            self._last = line
        if work.queue:
            waits = self._queues[work.queue] = _in_column(self._sheet, QUEUES, self.y, work.queue)
            self._sheet.arrow((waits.x + waits.width, line), (works.x, line))
        starts_below = bool(work.is_tasks and work.queue)
        words = (work.begins,) if work.begins or starts_below else (work.trigger, work.schedule)
        height = self._add_begins(QUEUES[0] if work.queue else WORKS[0], *words)
        self.y += max(works.height, height) + GAP
        if starts_below:
            self._add_start(work, works)
        self._senders.append((work, works, self.y - GAP / 2))

    def _add_begins(self, target: float, *words: str) -> float:
        """Draw who begins, if anything is said of it, and an arrow to the target.

        Returns its height.
        """
        if not any(words):
            return 0
        begins = _in_column(self._sheet, BEGINS, self.y, *words)
        line = self.y + MIDDLE
        self._sheet.arrow((begins.x + begins.width, line), (target, line))
        return begins.height

    def _add_start(self, work: DeployedWork, tasks: Box) -> None:
        """Draw the function that starts tasks, below what else leads to them."""
        start = _in_column(self._sheet, BEGINS, self.y, work.trigger, work.schedule)
        line, x = self.y + MIDDLE, tasks.bottom[0]
        self._sheet.arrow((start.x + start.width, line), (x, line), (x, tasks.bottom[1]))
        self.y += start.height + GAP

    def connect(self) -> None:
        """Draw what goes from a row to the queue of another, and the line to the stores."""
        for work, box, below in self._senders:
            x = box.x + 20
            for queue in work.sends:
                line = self._queues[queue].y + 6
                path = (x, box.bottom[1]), (x, below), (GUTTER, below), (GUTTER, line)
                self._sheet.arrow(*path, (QUEUES[0], line))
        self._sheet.arrow((BUS, self._top + MIDDLE), (BUS, self._last), is_line=True)


def _in_column(sheet: Sheet, column: tuple[int, int], y: float, *lines: str) -> Box:
    x, width = column
    return sheet.box(x, y, width, "\n".join(filter(None, lines)))
