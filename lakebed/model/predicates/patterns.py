"""Patterns of `like`: `%` stands for any text, also for none, `_` for one character, and everything
else for itself, as in SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal as OneOf

import msgspec

from lakebed.errors import InvalidError

PATTERN_MAX = 1_000
"""Characters."""
ANY, ONE = "%", "_"
_BELOW_SURROGATES, _ABOVE_SURROGATES = 0xD7FF, 0xE000
_LAST = 0x10FFFF


class LikePattern(msgspec.Struct, frozen=True):
    """A pattern of LIKE, taken apart.

    prefix: the text that every match begins with.
    rest: what may follow: nothing, any text, or only what `regex` finds.
    regex: of RE2; it finds itself in every match, and in nothing else.
    """

    prefix: str
    rest: OneOf["nothing", "anything", "some"]
    regex: str


@lru_cache(maxsize=256)
def pattern_of(text: str, escape: str | None) -> LikePattern:
    """Return what the text of a pattern says. escape: a character that makes the next one stand for
    itself; None: there is none.

    Raises:
        InvalidError: the pattern is too long, or ends with the escape.
    """
    if len(text) > PATTERN_MAX:
        hint = f"write at most {PATTERN_MAX} characters"
        raise InvalidError("a pattern is too long", got=len(text), hint=hint)
    if escape is not None and len(escape) != 1:
        hint = "give one character, for instance escape '!'"
        raise InvalidError("not an escape", got=ascii(escape)[:80], hint=hint)
    pieces = list(_pieces(text, escape))
    wild = [index for index, (_, is_wild) in enumerate(pieces) if is_wild]
    end = wild[0] if wild else len(pieces)
    prefix = "".join(letter for letter, _ in pieces[:end])
    if not wild:
        return LikePattern(prefix, "nothing", _regex(pieces))
    is_any = len(set(pieces[end:])) == 1 and pieces[end][0] == ANY
    return LikePattern(prefix, "anything" if is_any else "some", _regex(pieces))


def literal_pattern(text: str) -> tuple[str, str | None]:
    """Return a pattern that stands for just this text, and its escape."""
    if not re.search(r"[%_]", text):
        return text, None
    return re.sub(r"[%_\\]", lambda found: "\\" + found[0], text), "\\"


def text_above(prefix: str) -> str | None:
    """Return the smallest text above everything that begins with `prefix`; None: there is none."""
    stripped = prefix.rstrip(chr(_LAST))
    if not stripped:
        return None
    last = ord(stripped[-1])
    following = _ABOVE_SURROGATES if last == _BELOW_SURROGATES else last + 1
    return stripped[:-1] + chr(following)


def _pieces(text: str, escape: str | None) -> Iterator[tuple[str, bool]]:
    """Yield each character, and whether it stands for others."""
    letters = iter(text)
    for letter in letters:
        if letter != escape:
            yield letter, letter in (ANY, ONE)
            continue
        escaped = next(letters, None)
        if escaped is None:
            hint = "write the escape twice where it stands for itself"
            raise InvalidError("a pattern ends with its escape", pattern=text[:200], hint=hint)
        yield escaped, False


def _regex(pieces: list[tuple[str, bool]]) -> str:
    begin, end = 0, len(pieces)
    while begin < end and pieces[begin] == (ANY, True):
        begin += 1
    while end > begin and pieces[end - 1] == (ANY, True):
        end -= 1
    wild = {ANY: ".*", ONE: "."}
    found = "".join(wild[c] if is_wild else re.escape(c) for c, is_wild in pieces[begin:end])
    from_start, to_end = "" if begin else r"\A", "" if end < len(pieces) else r"\z"
    return f"(?s){from_start}{found}{to_end}"
