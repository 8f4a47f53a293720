"""Predicates as text, as in SQL: `fare >= 4 and (note is null or vehicle in ('a1', 'b7'))`.

A field's name stands as it is, or in double quotes; text, dates, times and binary (hex digits)
stand in single quotes; a quote inside of quotes is written twice. `=` may be written `==`, `!=`
`<>`; `fare between 4 and 9` includes both ends; `city like 'ab%'` has `%` for any text and `_` for
one character, and no escape unless it is named: `like '100!%' escape '!'`. Words like `and` may be
written in any case. `not` binds closer than `and`, `and` closer than `or`.
"""

from __future__ import annotations

import re
from typing import NamedTuple, cast

from lakebed.errors import InvalidError
from lakebed.model.predicates.language import (
    DEPTH_MAX,
    And,
    Compare,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)

CHARACTERS_MAX = 20_000
DIGITS_MAX = 100
WORDS = ("and", "or", "not", "in", "is", "null", "true", "false")
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?!\w))
    |(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|!=|<>|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)


_SAME: dict[str, Comparison] = {"<>": "!=", "==": "="}
_BEFORE_TEXT = ("date", "time", "timestamp")
"""Words of SQL that may stand before a text: `date '2013-01-31'`."""


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def predicate_from_text(text: str) -> Predicate:
    """Return the predicate that a person typed.

    Raises:
        InvalidError: the text is no predicate; the error says where it ends to be one.
    """
    if len(text) > CHARACTERS_MAX:
        hint = f"write at most {CHARACTERS_MAX} characters"
        raise InvalidError("a predicate is too long", got=len(text), hint=hint)
    reader = _Reader(text)
    found = reader.either(DEPTH_MAX)
    if reader.next.kind != "end":
        raise reader.refused("expected `and`, `or`, or the end")
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    @property
    def next(self) -> _Token:
        return self._tokens[self._at]

    def either(self, depth: int) -> Predicate:
        parts = [self._all(depth)]
        while self._take("or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def refused(self, problem: str) -> InvalidError:
        here = self._text[self.next.at :][:30] or "the end"
        hint = f"{problem}; for instance: fare >= 4 and note is not null"
        return InvalidError("not a predicate", text=self._text[:200], at=here, hint=hint)

    def _all(self, depth: int) -> Predicate:
        parts = [self._one(depth)]
        while self._take("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self, depth: int) -> Predicate:
        if depth <= 0:
            raise self.refused(f"brackets and `not` go at most {DEPTH_MAX} deep")
        if self._take("not"):
            return Not(self._one(depth - 1))
        if self._take("("):
            found = self.either(depth - 1)
            self._require(")")
            return found
        return self._test()

    def _test(self) -> Predicate:
        name = self._name()
        if self._take("is"):
            negated = self._take("not")
            self._require("null")
            return IsNotNull(name) if negated else IsNull(name)
        negated = self._take("not")
        found = self._worded(name)
        if found is not None:
            return Not(found) if negated else found
        sign = self.next.text
        if negated or self.next.kind != "sign" or sign in "(),":
            raise self.refused("expected =, !=, <, <=, >, >=, in, between, like or is")
        self._at += 1
        return Compare(name, _SAME.get(sign) or cast("Comparison", sign), self._literal())

    def _worded(self, name: str) -> Predicate | None:
        """Return a test that begins with a word, and may follow `not`; None: it is another one."""
        if self._take("in"):
            return In(name, self._list())
        if self._take("between"):
            least = self._literal()
            self._require("and")
            return And((Compare(name, ">=", least), Compare(name, "<=", self._literal())))
        if self._take("like"):
            pattern = self._quoted()
            return Like(name, pattern, self._quoted() if self._take("escape") else None)
        return None

    def _list(self) -> tuple[object, ...]:
        self._require("(")
        values = [self._literal()]
        while self._take(","):
            values.append(self._literal())
        self._require(")")
        return tuple(values)

    def _name(self) -> str:
        token = self.next
        if token.kind == "quoted":
            self._at += 1
            return token.text[1:-1].replace('""', '"')
        if token.kind != "word" or token.text.lower() in WORDS:
            raise self.refused("expected the name of a field, in double quotes if it is a word")
        self._at += 1
        return token.text

    def _quoted(self) -> str:
        token = self.next
        if token.kind != "text":
            raise self.refused("expected text in single quotes")
        self._at += 1
        return token.text[1:-1].replace("''", "'")

    def _literal(self) -> object:
        token = self.next
        value: object
        if token.kind == "word" and token.text.lower() in _BEFORE_TEXT:
            self._at += 1
            return self._quoted()
        if token.kind == "number":
            if len(token.text) > DIGITS_MAX:
                raise self.refused(f"a number has at most {DIGITS_MAX} digits")
            value = float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
        elif token.kind == "text":
            return self._quoted()
        elif token.kind == "word" and token.text.lower() in ("true", "false"):
            value = token.text.lower() == "true"
        else:
            raise self.refused("expected a number, true, false, or a value in single quotes")
        self._at += 1
        return value

    def _take(self, text: str) -> bool:
        token = self.next
        if token.kind in ("word", "sign") and token.text.lower() == text:
            self._at += 1
            return True
        return False

    def _require(self, text: str) -> None:
        if not self._take(text):
            raise self.refused(f"expected `{text}`")


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            hint = "values stand in single quotes, names in double quotes or none"
            raise InvalidError("not a predicate", text=text[:200], at=text[at:][:30], hint=hint)
        kind = cast("str", found.lastgroup)
        tokens.append(_Token(kind, found[kind], found.start(kind)))
        at = found.end()
    return [*tokens, _Token("end", "", end)]
