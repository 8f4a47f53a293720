"""What a format's reader gives: the wanted values of those records that can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.decoding.decoder import Verdicts
from lakebed.model.feeds.verdicts import Verdict

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReadValues:
    """The values of some records.

    records: indices of the records that could be read, rising.
    columns: of each wanted value a column, in their order: as it was read, not yet as its column.
    unknown: how many records had a value that was not wanted, by name.
    """

    records: Indices
    columns: Sequence[pa.Array]
    unknown: Mapping[str, int] = field(default_factory=dict)


class ValueReader(Protocol):
    """Reads the wanted values of payloads of one format."""

    def read(self, payloads: pa.BinaryArray, verdicts: Verdicts) -> ReadValues:
        """Return the values of a block of payloads without nulls. Those that cannot be read get
        their verdict, and no value."""
        ...

    def why_null(self, payload: bytes, value: int) -> Verdict:
        """Return whether a value that is required is missing or null in a payload that was read."""
        ...
