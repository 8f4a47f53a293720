"""What policies ask for, held against what a table and this release can do."""

from __future__ import annotations

from lakebed.config.policies import Contract, Policy
from lakebed.config.policy_definitions import refuse_unbuilt
from lakebed.errors import InvalidError
from lakebed.model.feeds.verdicts import Verdict
from lakebed.statestore.open_table import OpenTable


def check_policy(policy: Policy, table: OpenTable, *, at: str) -> None:
    """Refuse what a connection's policy asks for, and its table or this release cannot do.

    Raises:
        InvalidError: it asks for that.
    """
    refuse_unbuilt(policy, at=at)
    if policy.dedupe != "key":
        return
    with table.head.reading() as state:
        processing = state.processing()
    if processing is None or processing.latest is None:
        hint = "create the table with `latest` in its processing"
        raise InvalidError(
            "rows of one key are known only where the table keeps the latest", at=at, hint=hint
        )


def verdicts_of(policy: Policy, contract: Contract) -> frozenset[Verdict]:
    """Return the verdicts of records for which a policy's schema says this."""
    found = {Verdict.UNKNOWN_FIELD} if policy.schema_column == contract else set[Verdict]()
    if policy.schema_type == contract:
        found |= {Verdict.TYPE_MISMATCH, Verdict.OUT_OF_RANGE}
    return frozenset(found)
