"""Text becomes decimals, each exactly, or it is refused.

Arrow appends zeros up to a decimal's scale without a look at what overflows, in its casts of text
and in its reader of CSV: `20062827603801437255781353093375376324` became a `decimal128(38, 9)` that
has nothing to do with it. So text is read as decimals of 256 bits, compared with the
same text as floating point, and only then narrowed, which Arrow checks.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

WIDE_DIGITS: Final = 76
_TOLERANCE: Final = 1e-6
"""Relative difference that only overflown values exceed: a float64 has 15 digits."""


def decimals_from_text(texts: pa.Array, wanted: pa.Decimal128Type) -> pa.Array:
    """Return the decimals that texts write, also with exponents.

    Raises:
        pa.ArrowInvalid: one is no number, has digits behind the scale, or does not fit.
    """
    wide = texts.cast(pa.decimal256(WIDE_DIGITS - wanted.scale, wanted.scale))
    found, meant = wide.cast(pa.float64()), texts.cast(pa.float64())
    apart = pc.abs(pc.subtract(found, meant))
    is_apart = pc.greater(apart, pc.multiply(pc.abs(meant), _TOLERANCE))
    if pc.any(is_apart).as_py():  # bounded: one flag
        raise pa.ArrowInvalid(f"a number does not fit {wanted}")
    return wide.cast(wanted)
