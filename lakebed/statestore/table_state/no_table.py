"""Why a state holds no table: it was dropped, it was never created, or its log is gone."""

from lakebed.errors import LogMissingError, TableMissingError
from lakebed.model.names import TransactionNumber

LOG_MISSING_HINT = "restore it from a copy, or run `lakebed fsck`"


def no_table(number: TransactionNumber, *, dropped: bool) -> TableMissingError | LogMissingError:
    """Return the error of a state at `number` that holds no table.

    A caller has the table's id from the registry or from a message, and a log is begun before
    its table gets a name (H32). So a log without entries has lost them: that may be mended, and
    refuses no request for ever.
    """
    if dropped:
        return TableMissingError("the table was dropped")
    if not number:
        return LogMissingError("the log of the table is missing", hint=LOG_MISSING_HINT)
    return TableMissingError("the table was not created")
