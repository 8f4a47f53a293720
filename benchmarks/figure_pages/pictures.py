"""Bars as SVG, legible on light and dark ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, ROW, TOP, BOTTOM = 720, 30, 40, 26
LABELS, BARS = 150, 450
"""Columns: where bars begin, and how long the longest is."""

STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.small { font-size: 11px; fill: #656d76 }
.reached { fill: #1a7f74 }
.missed { fill: #c77d13 }
.aim { stroke: #24292f; stroke-width: 2 }
.peer { stroke: #8c959f; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #9198a1 }
  .reached { fill: #3fb6a8 }
  .missed { fill: #e3a33c }
  .aim { stroke: #e6edf3 }
}"""


class Bar(NamedTuple):
    """One bar. aim: where its tick is, if any."""

    label: str
    value: float
    text: str
    aim: float | None
    is_reached: bool


def picture(title: str, bars: Sequence[Bar], peer: str | None = None) -> str:
    """Return bars from zero, one below the other. peer: named at a line where the value is 1."""
    longest = max([bar.value for bar in bars] + [bar.aim or 0 for bar in bars] + [1.0])
    scale = BARS / longest
    below = TOP + ROW * len(bars)
    height = below + BOTTOM
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<text class="title" x="0" y="18">{escape(title)}</text>',
    ]
    for place, bar in enumerate(bars):
        lines += _bar(bar, TOP + ROW * place, scale)
    if peer is not None:
        at, name = f"{LABELS + scale:.1f}", escape(peer)
        lines += [
            f'<line class="peer" x1="{at}" x2="{at}" y1="{TOP - 4}" y2="{below + 4}"/>',
            f'<text class="small" text-anchor="middle" x="{at}" y="{below + 18}">{name}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def _bar(bar: Bar, top: int, scale: float) -> list[str]:
    length = max(1.0, bar.value * scale)
    middle = top + ROW // 2 + 4
    kind = "reached" if bar.is_reached else "missed"
    label = f'<text text-anchor="end" x="{LABELS - 8}" y="{middle}">{escape(bar.label)}</text>'
    size = f'width="{length:.1f}" height="{ROW - 10}"'
    lines = [label, f'<rect class="{kind}" x="{LABELS}" y="{top + 5}" {size} rx="2"/>']
    end = length
    if bar.aim is not None:
        at = bar.aim * scale
        x = f"{LABELS + at:.1f}"
        lines.append(f'<line class="aim" x1="{x}" x2="{x}" y1="{top + 2}" y2="{top + ROW - 2}"/>')
        end = max(length, at)
    lines.append(f'<text x="{LABELS + end + 8:.1f}" y="{middle}">{escape(bar.text)}</text>')
    return lines
