"""Raw records: bytes without fields, which a connection takes whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebed.decoding.decoder import Verdicts
from lakebed.decoding.values import ReadValues
from lakebed.decoding.wanted import Value
from lakebed.errors import InvalidError
from lakebed.model.feeds.verdicts import Verdict


class RawValues:
    """Reads every record, and no values."""

    def __init__(self, values: Sequence[Value]) -> None:
        """Refuse values that are wanted: there are none. Raises: InvalidError."""
        if values:
            name = ".".join(values[0].path)
            hint = f"make {name!r} nullable and leave it out, or choose another format"
            raise InvalidError("raw records have no fields", path=name, hint=hint)

    def read(self, payloads: pa.BinaryArray, verdicts: Verdicts) -> ReadValues:
        """Return that all payloads can be read."""
        return ReadValues(np.arange(len(payloads)), [])

    def why_null(self, payload: bytes, value: int) -> Verdict:
        """Return that it is missing."""
        return Verdict.MISSING_FIELD
