"""Compare what an account may use at one time with what an instance needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from lakebed.config.accounts.quotas import FUNCTION_RUNS, NETWORKS, QUOTAS, Quota
from lakebed.errors import LakebedError
from lakebed.ports.account import Account

State = Literal["enough", "too little", "not read"]


class QuotaFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One quota of an account.

    service, code, name: as Service Quotas has them.
    has: what the account has for the instance; None: it could not be read.
    needs: what the instance needs.
    advice: what to do; "" where that is nothing.
    """

    service: str
    code: str
    name: str
    state: State
    has: float | None
    needs: int
    advice: str


class ExamineAccount:
    """Reads each quota once, and changes nothing.

    needs: of the instance, by the code of each quota.
    """

    def __init__(self, account: Account, needs: Mapping[str, int]) -> None:
        self._account = account
        self._needs = needs

    def run(self) -> list[QuotaFinding]:
        """Return a finding for each quota that instances need something of. One that cannot be read
        is a finding, too."""
        return [self.of(quota) for quota in QUOTAS]

    def of(self, quota: Quota) -> QuotaFinding:
        """Return a finding about one quota."""
        needs = self._needs.get(quota.code, 0)
        try:
            has = self._has(quota, needs)
        except LakebedError as error:
            return _finding(quota, "not read", None, needs, _unread(error))
        if has is None:
            return _finding(quota, "not read", None, needs, "Service Quotas does not know it here")
        if has >= needs:
            return _finding(quota, "enough", has, needs, "")
        return _finding(quota, "too little", has, needs, _asked(quota, needs))

    def _has(self, quota: Quota, needs: int) -> float | None:
        """Return what of a quota is there for the instance."""
        if quota is FUNCTION_RUNS:
            return self._account.function_runs()
        limit = self._account.quota(quota.service, quota.code)
        if limit is None or quota is not NETWORKS:
            return limit
        of_others = self._account.networks() - needs
        return limit - of_others


def _finding(
    quota: Quota, state: State, has: float | None, needs: int, advice: str
) -> QuotaFinding:
    return QuotaFinding(
        service=quota.service,
        code=quota.code,
        name=quota.name,
        state=state,
        has=has,
        needs=needs,
        advice=advice,
    )


def _asked(quota: Quota, needs: int) -> str:
    lower = f"or deploy with less: {', '.join(quota.settings)}"
    if quota is FUNCTION_RUNS:
        return (
            f"ask Service Quotas for {needs} of {quota.service} {quota.code}, reserve fewer runs"
            f" for other functions, {lower}"
        )
    if quota is NETWORKS:
        return (
            f"ask Service Quotas for more of {quota.service} {quota.code}, or deploy into a network"
            " of yours: vpc_id"
        )
    return f"ask Service Quotas for {needs} of {quota.service} {quota.code}, {lower}"


def _unread(error: LakebedError) -> str:
    permission = error.facts.get("permission")
    if permission is not None:
        return f"the credentials must permit {permission}"
    return f"try again: {error}"
