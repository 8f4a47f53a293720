"""Memory that ran out, reported with what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lakebed.model.disk_errors import out_of_memory


@contextmanager
def enough_memory() -> Iterator[None]:
    """Tell an allocation that fails inside as an error that another try may not meet."""
    try:
        yield
    except (MemoryError, pa.ArrowCapacityError) as error:
        raise out_of_memory(error) from error
