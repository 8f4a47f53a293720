"""Wraps paragraphs and list items of pages that have a line of more than 100 columns.

python -m docs.wrapping PAGE...

Code, tables and headings stay as they are, and so does every block whose lines are short enough.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

COLUMNS_MAX = 100
ITEM = re.compile(r"(\s*(?:[-*+]|\d+[.)])\s+)(.*)")
INDENTED = re.compile(r"(\s*)(.*)")
LEFT_ALONE = ("#", "|", ">", "<", "![", "    ")
"""What begins a line that is no prose."""
BEGINS_A_BLOCK = re.compile(r"#|[-+*]$|\d+[.)]$|>|\||```")
"""A word that would begin something else if it stood first in a line."""


def wrapped(page: str) -> str:
    """Return the page with its long paragraphs wrapped."""
    done: list[str] = []
    for block, is_prose in _blocks(page.split("\n")):
        is_long = max(map(len, block)) > COLUMNS_MAX
        done += _filled(block) if is_prose and is_long else block
    return "\n".join(done)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[list[str], bool]]:
    """Yield lines that are wrapped together, a paragraph or an item of a list; all others one by
    one. With each: whether it is prose."""
    block: list[str] = []
    is_code = False
    for line in lines:
        fence = line.lstrip().startswith("```")
        is_prose = not (is_code or fence or not line.strip() or line.startswith(LEFT_ALONE))
        if block and (not is_prose or ITEM.match(line)):
            yield block, True
            block = []
        is_code ^= fence
        if is_prose:
            block.append(line)
        else:
            yield [line], False
    if block:
        yield block, True


def _filled(block: Sequence[str]) -> list[str]:
    """Return a block in lines that are short enough, as far as its words are."""
    begin = ITEM.match(block[0]) or INDENTED.match(block[0])
    assert begin is not None, "any line may be indented"
    lines, line, indent = [], begin[1], " " * len(begin[1])
    is_empty = True
    for word in _words(" ".join([begin[2], *(each.strip() for each in block[1:])])):
        if is_empty or len(line) + 1 + len(word) <= COLUMNS_MAX or BEGINS_A_BLOCK.match(word):
            line += word if is_empty else f" {word}"
        else:
            lines.append(line)
            line = indent + word
        is_empty = False
    return [*lines, line]


def _words(text: str) -> list[str]:
    """Return words; code between backticks belongs to one of them."""
    words = [""]
    for part in re.split(r"(`+[^`]*`+)", text):
        if part.startswith("`"):
            words[-1] += part
        else:
            first, *others = re.split(r"\s+", part)
            words[-1] += first
            words += others
    return [word for word in words if word]


def main(pages: Sequence[str]) -> None:
    """Wrap pages where they are."""
    for path in map(Path, pages):
        before = path.read_text("utf-8")
        after = wrapped(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"wrapped {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
