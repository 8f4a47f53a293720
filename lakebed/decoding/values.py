"""Defines what the reader of a format returns: the wanted values of all readable records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.decoding.decoder import Verdicts
from lakebed.model.feeds.verdicts import Verdict

DROPPED: Final = (Verdict.TYPE_MISMATCH, Verdict.OUT_OF_RANGE)
"""Verdicts of one value: a record may be a row without it."""
UNKNOWN_NAMES_MAX: Final = 100
NAME_CHARACTERS_MAX: Final = 100
"""Most characters of an unwanted name: records choose them, so they are bounded."""

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReadValues:
    """The values of some records.

    records: indices of the records that could be read, rising.
    columns: of each wanted value a column, in their order: as it was read, not yet as its column.
    unknown: how many records had a value that was not wanted, by name.
    dropped: by the index of a value, the records in which it was left out, as it does not fit.
    """

    records: Indices
    columns: Sequence[pa.Array]
    unknown: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[int, Indices] = field(default_factory=dict)


def count_names(counts: Counter[str], names: Iterable[str]) -> None:
    """Count names of one record that none wants; of the first hundred different ones."""
    for name in names:
        short = name[:NAME_CHARACTERS_MAX]
        if short in counts or len(counts) < UNKNOWN_NAMES_MAX:
            counts[short] += 1


class ValueReader(Protocol):
    """Reads the wanted values of payloads of one format."""

    def read(self, payloads: pa.BinaryArray, verdicts: Verdicts) -> ReadValues:
        """Return the values of a block of payloads without nulls. Those that cannot be read get
        their verdict, and no value."""
        ...

    def why_null(self, payload: bytes, value: int) -> Verdict:
        """Return whether a value that is required is missing or null in a payload that was read."""
        ...
