"""Why Arrow rejects a payload: it is read once more, alone, by Python's own parser of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NoReturn

from lakebed.decoding.masks import DIGITS_MAX
from lakebed.decoding.wanted import Raw, Value, tree_of
from lakebed.model import types
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.types import ListOf, MapOf, Primitive, StructOf

Reason = tuple[Verdict, str]
TOO_DEEP: Reason = (Verdict.UNPARSABLE, "it is nested too deep")
EXPONENT_MAX = 308
_SPACE = " \t\n\r"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE](?:[+-]|\+-)?\d+)?", re.ASCII)
_OBJECT = "an object"


class _NotJsonError(ValueError):
    """NaN or Infinity, which JSON does not have."""


class _TooLargeError(ValueError):
    """A number with an exponent that Arrow refuses, whatever field it stands in."""


class Number(str):
    """A number's text."""

    __slots__ = ()


class Pairs(list[tuple[str, object]]):
    """The members of an object, with names that come twice."""

    __slots__ = ()


def _no_constant(_: str) -> NoReturn:
    raise _NotJsonError


def _float(text: str) -> Number:
    mantissa, _, exponent = text.lower().partition("e")
    if exponent:
        fraction = len(mantissa.partition(".")[2])
        if len(exponent) > 20 and exponent[0] != "-":
            raise _TooLargeError
        if len(exponent) <= 20 and int(exponent) > EXPONENT_MAX + fraction:
            raise _TooLargeError
    return Number(text)


DECODER = json.JSONDecoder(
    object_pairs_hook=Pairs,
    parse_int=Number,
    parse_float=_float,
    parse_constant=_no_constant,
)


class Judge:
    """Says why payloads cannot be read.

    values: that are wanted. refuses_unknown: whether all others are refused.
    """

    def __init__(self, values: Sequence[Value], *, refuses_unknown: bool) -> None:
        self._values = values
        self._tree = tree_of(tuple(values))
        self._refuses = refuses_unknown
        self.unknown: list[str] = []
        """Names at the top of the last payload that were refused."""

    def reason(self, payload: bytes) -> Reason | None:
        """Return what is wrong with a payload; None: nothing that is looked for here."""
        self.unknown = []
        try:
            text = payload.decode()
        except UnicodeDecodeError as error:
            return Verdict.NOT_UTF8, f"byte {error.start}"
        try:
            begin = len(text) - len(text.lstrip(_SPACE))
            if begin == len(text):
                return Verdict.NOT_ONE_OBJECT, "it is empty"
            found, end = DECODER.raw_decode(text, begin)
        except RecursionError:
            return TOO_DEEP
        except _NotJsonError:
            return Verdict.UNPARSABLE, "JSON has no NaN and no Infinity"
        except _TooLargeError:
            return Verdict.OUT_OF_RANGE, "a number is too large"
        except json.JSONDecodeError as error:
            return Verdict.UNPARSABLE, f"{error.msg.lower()}, at character {error.pos}"
        if not isinstance(found, Pairs):
            return Verdict.NOT_ONE_OBJECT, f"{_kind(found)}, not an object"
        if text[end:].strip(_SPACE):
            return Verdict.NOT_ONE_OBJECT, f"more after the object, at character {end}"
        return self._object(found, self._tree, "")

    def is_strict(self, payload: bytes) -> bool:
        """Return whether a payload is JSON as Python reads it, without NaN and all that Arrow takes
        for a number beside it."""
        try:
            DECODER.decode(payload.decode())
        except (ValueError, RecursionError):
            return False
        return True

    def why_null(self, payload: bytes, value: Value) -> Verdict:
        """Return whether a value that is required is missing or null."""
        try:
            node: object = DECODER.decode(payload.decode())
        except RecursionError:  # Arrow reads what is nested deeper than Python goes
            return Verdict.MISSING_FIELD
        for name in value.path:
            members = dict(node) if isinstance(node, Pairs) else {}
            if name not in members:
                return Verdict.MISSING_FIELD
            node = members[name]
        return Verdict.NULL_IN_REQUIRED

    def _object(self, found: Pairs, tree: Mapping[str, object], at: str) -> Reason | None:
        names = [name for name, _ in found if name in tree]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            return Verdict.DUPLICATE_FIELD, f"{at}.{twice}" if at else twice
        unknown = [name for name, _ in found if name not in tree]
        for name, value in found:
            if name not in tree:
                continue
            path = f"{at}.{name}" if at else name
            inner = tree[name]
            if isinstance(inner, int):
                reason = reason_of(value, self._values[inner].raw, path)
                if reason is not None and self._values[inner].time is not None:
                    reason = Verdict.TIME_UNREADABLE, reason[1]
            elif value is None:
                reason = None
            elif isinstance(value, Pairs):
                assert isinstance(inner, dict), "a tree holds indices and trees"
                reason = self._object(value, inner, path)
            else:
                reason = Verdict.TYPE_MISMATCH, f"{path}: {_kind(value)}, not an object"
            if reason is not None:
                return reason
        if unknown and self._refuses:
            if not at:
                self.unknown = unknown
            where = f"in {at}" if at else "in the record"
            return Verdict.UNKNOWN_FIELD, f"{len(unknown)} {where}"
        return None


def reason_of(value: object, raw: Raw, at: str) -> Reason | None:
    """Return why Arrow does not read a value as what it is wanted."""
    if value is None:
        return None
    match raw:
        case "number":
            return _reason_of_number(value, 9, at)
        case types.Decimal(_, scale):
            return _reason_of_number(value, scale, at)
        case ListOf(element):
            if not isinstance(value, list) or isinstance(value, Pairs):
                return _mismatch(value, "a list", at)
            reasons = (reason_of(v, element, f"{at}[]") for v in value)
            return next((reason for reason in reasons if reason), None)
        case StructOf(members):
            return _reason_of_struct(value, {m.name: m.type for m in members}, at)
        case MapOf(_, item):
            if not isinstance(value, Pairs):
                return _mismatch(value, _OBJECT, at)
            names = [name for name, _ in value]
            if len(set(names)) < len(names):
                return Verdict.DUPLICATE_FIELD, f"{at}: a key comes twice"
            reasons = (reason_of(v, item, f"{at}{{}}") for _, v in value)
            return next((reason for reason in reasons if reason), None)
        case Primitive(name):
            return _reason_of_primitive(value, name, at)


def _reason_of_primitive(value: object, name: str, at: str) -> Reason | None:
    if "int" in name:
        return _reason_of_number(value, 0, at)
    if name.startswith("float"):
        if not isinstance(value, Number):
            return _mismatch(value, "a number", at)
        if float(value) in (float("inf"), float("-inf")):
            return Verdict.OUT_OF_RANGE, f"{at}: too large for {name}"
        return None
    if name == "bool":
        return None if isinstance(value, bool) else _mismatch(value, "true or false", at)
    is_text = isinstance(value, str) and not isinstance(value, Number)
    return None if is_text else _mismatch(value, "a text", at)


def _reason_of_struct(value: object, types_: Mapping[str, Raw], at: str) -> Reason | None:
    if not isinstance(value, Pairs):
        return _mismatch(value, _OBJECT, at)
    seen: set[str] = set()
    for name, inner in value:
        if name in seen:
            return Verdict.DUPLICATE_FIELD, f"{at}.{name}"
        if name in types_:
            seen.add(name)
            reason = reason_of(inner, types_[name], f"{at}.{name}")
            if reason is not None:
                return reason
    return None


def _reason_of_number(value: object, scale: int, at: str) -> Reason | None:
    """Return why Arrow does not read a number, or a text of one, as a decimal of 256 bits. Whether
    it fits into its column is seen later."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        kind = "a text, not a number" if isinstance(value, str) else f"{_kind(value)}, no number"
        return Verdict.TYPE_MISMATCH, f"{at}: {kind}"
    mantissa, _, exponent_text = value.lower().partition("e")
    if len(exponent_text.lstrip("+-0")) > 4:  # Python's decimals are not made of these
        if not mantissa.strip("+-0.") and "-" in exponent_text:
            return None
        return Verdict.OUT_OF_RANGE, f"{at}: its exponent is too large"
    _, digits, exponent = Decimal(str(value).replace("+-", "-")).as_tuple()
    assert isinstance(exponent, int), "the text is a number's"
    whole, _, fraction = mantissa.lstrip("+-").partition(".")
    beyond = int(exponent_text.replace("+-", "-") or 0) - len(fraction)
    length = len(whole.lstrip("0")) + len(fraction) + max(beyond, 0)  # as Arrow counts digits
    if length > DIGITS_MAX - scale:
        return Verdict.OUT_OF_RANGE, f"{at}: too large"
    lost = digits[max(len(digits) + exponent + scale, 0) :] if exponent < -scale else ()
    if any(lost):
        if not scale:
            return Verdict.TYPE_MISMATCH, f"{at}: a fraction, not an integer"
        return Verdict.OUT_OF_RANGE, f"{at}: more than {scale} digits after the point"
    return None


def _mismatch(value: object, wanted: str, at: str) -> Reason:
    return Verdict.TYPE_MISMATCH, f"{at}: {_kind(value)}, not {wanted}"


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case Number():
            return "a number"
        case str():
            return "a text"
        case Pairs():
            return _OBJECT
        case _:
            return "an array"
