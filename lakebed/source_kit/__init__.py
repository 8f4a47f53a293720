"""Checks what every source of records promises: authors of adaptors run it on their own.

`docs/change/source.md` shows how.
"""

from lakebed.source_kit.checks import CHECKS, Check
from lakebed.source_kit.item_checks import ITEM_CHECKS
from lakebed.source_kit.trial import NotOfferedError, SourceTrial

__all__ = ["CHECKS", "ITEM_CHECKS", "Check", "NotOfferedError", "SourceTrial"]
