"""Tables in Spark: frames of their rows, and frames appended to them.

import lakebed.spark

trips = lakebed.spark.read(spark, "./lake", "trips", columns=["vehicle", "fare"])
lakebed.spark.append(trips, "aws:dev", "trips", job="2013-01")
lakebed.spark.register(spark)  # Spark 4: spark.read.format("lakebed")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakebed.spark.appending import append
    from lakebed.spark.reading import read
    from lakebed.spark.registration import register

__all__ = ["append", "read", "register"]

_MODULES = {"append": "appending", "read": "reading", "register": "registration"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module holds
    """Import what needs pyspark when it is first asked for. Raises: InvalidError without it."""
    import importlib

    from lakebed.errors import InvalidError

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"lakebed.spark.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        hint = "install it beside Lakebed: pip install 'pyspark[sql]==4.0.2'"
        raise InvalidError("lakebed.spark needs pyspark, which is missing", hint=hint) from None
