"""Boxes, arrows and lanes as SVG, legible on light and dark ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

Kind = Literal["plain", "good", "bad", "quiet"]
Point = tuple[float, float]

WIDTH = 760
LINE, PADDING = 16, 8
"""Height of a line of text; space above and below the lines of a box."""
LANES_TOP, MARGIN = 44, 95
"""Where the names of lanes stand; from the edge to the middle of the first and the last lane."""

STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 13px; font-weight: 600 }
.name { font-weight: 600 }
text.quiet { fill: #656d76 }
rect, .lane { fill: none; stroke: #8c959f }
rect.good { stroke: #1a7f74; stroke-width: 1.5 }
rect.bad { stroke: #c0392b; stroke-width: 1.5 }
rect.quiet, .lane { stroke: #8c959f; stroke-dasharray: 3 3 }
.arrow { fill: none; stroke: #57606a; stroke-width: 1.2 }
.arrow.good { stroke: #1a7f74 }
.arrow.bad { stroke: #c0392b }
.arrow.quiet { stroke-dasharray: 3 3 }
.head { fill: #57606a }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  text.quiet { fill: #9198a1 }
  rect.good, .arrow.good { stroke: #3fb6a8 }
  rect.bad, .arrow.bad { stroke: #ff7b72 }
  .arrow { stroke: #9198a1 }
  .head { fill: #9198a1 }
}"""

HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
    ' orient="auto-start-reverse"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker>'
)


class Box(NamedTuple):
    """Where a box lies."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> Point:
        return (self.x + self.width / 2, self.y)

    @property
    def bottom(self) -> Point:
        return (self.x + self.width / 2, self.y + self.height)

    @property
    def left(self) -> Point:
        return (self.x, self.y + self.height / 2)

    @property
    def right(self) -> Point:
        return (self.x + self.width, self.y + self.height / 2)


class Sheet:
    """A drawing in the making. Places are in pixels from the upper left corner."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []
        self._height = 0.0
        self.text(0, 16, title, "title")

    def text(self, x: float, y: float, words: str, kind: str = "plain", anchor: str = "") -> None:
        """Write one line. y: of its baseline."""
        self.reach(y + 6)
        side = f' text-anchor="{anchor}"' if anchor else ""
        self._parts.append(f'<text class="{kind}"{side} x="{x:g}" y="{y:g}">{escape(words)}</text>')

    def box(self, x: float, y: float, width: float, words: str, kind: Kind = "plain") -> Box:
        """Draw a box around lines of text; it is as high as they need."""
        lines = words.splitlines()
        height = LINE * len(lines) + 2 * PADDING - 2
        self.reach(y + height + 4)
        size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self._parts.append(f'<rect class="{kind}" {size} rx="4"/>')
        for number, line in enumerate(lines):
            self.text(x + width / 2, y + PADDING + 11 + LINE * number, line, anchor="middle")
        return Box(x, y, width, height)

    def arrow(self, *points: Point, kind: Kind = "plain", is_line: bool = False) -> None:
        """Draw a line through points, with a head at the last unless it is a mere line."""
        path = " ".join(f"{'L' if n else 'M'}{x:g} {y:g}" for n, (x, y) in enumerate(points))
        head = "" if is_line else ' marker-end="url(#head)"'
        self._parts.append(f'<path class="arrow {kind}" d="{path}"{head}/>')

    def lane(self, x: float, start: float, end: float) -> None:
        """Draw the life of something from top to bottom."""
        self._parts.append(f'<path class="lane" d="M{x:g} {start:g} L{x:g} {end:g}"/>')

    def svg(self) -> str:
        """Return the drawing."""
        size = f'viewBox="0 0 {WIDTH} {self._height:g}" width="{WIDTH}" height="{self._height:g}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
                f"<title>{escape(self._title)}</title>",
                f"<style>\n{STYLE}\n</style>",
                f"<defs>{HEAD}</defs>",
                *self._parts,
                "</svg>\n",
            ]
        )

    def reach(self, y: float) -> None:
        """Make the sheet so high at least."""
        self._height = max(self._height, y)


class Send(NamedTuple):
    """Something goes from one lane to another, by their numbers."""

    source: int
    target: int
    words: str
    kind: Kind = "plain"


class Note(NamedTuple):
    """What happens in a lane, by its number. width: of the box."""

    lane: int
    words: str
    kind: Kind = "plain"
    width: float = 170


def lanes(title: str, names: Sequence[str], steps: Sequence[Send | Note]) -> str:
    """Return a drawing in which time runs downwards. Words of a `Send` stand above its arrow."""
    sheet = Sheet(title)
    apart = (WIDTH - 2 * MARGIN) / (len(names) - 1)
    middles = [MARGIN + apart * number for number in range(len(names))]
    y = LANES_TOP + 16.0
    crossed: list[list[tuple[float, float]]] = [[] for _ in names]
    for step in steps:
        if isinstance(step, Note):
            x = min(max(middles[step.lane] - step.width / 2, 0), WIDTH - step.width)
            box = sheet.box(x, y, step.width, step.words, step.kind)
            for number, middle in enumerate(middles):
                if box.x <= middle <= box.x + box.width:
                    crossed[number].append((box.y, box.y + box.height))
            y += box.height + 12
        else:
            start, end = middles[step.source], middles[step.target]
            lines = step.words.splitlines()
            for line in lines:
                y += LINE
                sheet.text((start + end) / 2, y - 4, line, anchor="middle")
            inset = 3 if end > start else -3
            sheet.arrow((start, y + 4), (end - inset, y + 4), kind=step.kind)
            y += 20
            sheet.reach(y)
    for number, name in enumerate(names):
        sheet.text(middles[number], LANES_TOP, name, "name", "middle")
        at = LANES_TOP + 6.0
        for top, bottom in crossed[number]:
            sheet.lane(middles[number], at, top)
            at = bottom
        sheet.lane(middles[number], at, y)
    return sheet.svg()
