"""A file of prices: dated, of one region, and replaced by users whose prices differ."""

from __future__ import annotations

import datetime
import tomllib
from importlib.resources import files
from pathlib import Path

import msgspec

from lakebed.errors import InvalidError, did_you_mean

PACKAGED = "prices-aws.toml"


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars for one of each thing, by its name.

    date: of the day on which they were looked up.
    """

    region: str
    date: datetime.date
    prices: dict[str, float]


def packaged_prices() -> Prices:
    """Return the prices that come with Lakebed."""
    return _prices(packaged_text(), PACKAGED, known=None)


def packaged_text() -> str:
    """Return the file that comes with Lakebed, comments and all."""
    return files("lakebed.costs").joinpath(PACKAGED).read_text("utf-8")


def prices_in(path: Path) -> Prices:
    """Return the prices of a user's file. It names each thing, and nothing else.

    Raises:
        InvalidError: it cannot be read, is not TOML, lacks a price, has one of no known thing, or
            one that is not a number of dollars.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(
            "a file of prices cannot be read",
            file=path,
            reason=error,
            hint="name a file of text in UTF-8 that this process may read",
        ) from None
    return _prices(text, str(path), known=set(packaged_prices().prices))


def _prices(text: str, file: str, *, known: set[str] | None) -> Prices:
    hint = "copy the file that `lakebed cost prices` prints, and change it"
    try:
        found = msgspec.convert(tomllib.loads(text), Prices)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidError("not a file of prices", file=file, reason=error, hint=hint) from None
    if known is None:
        return found
    for name in found.prices.keys() - known:
        near = did_you_mean(name, known, what="price")
        raise InvalidError("a price of no known thing", file=file, price=name, hint=near)
    if missing := sorted(known - found.prices.keys()):
        raise InvalidError("prices are missing", file=file, prices=", ".join(missing), hint=hint)
    for name, price in found.prices.items():
        if not 0 <= price < float("inf"):
            raise InvalidError(
                "not a price", file=file, name=name, price=price, hint="dollars, 0 or more"
            )
    return found
