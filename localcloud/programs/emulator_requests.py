"""Requests that came to MiniStack, counted by role and by the action that AWS names them.

Loaded by `emulator_process`, which is MiniStack's process.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ministack.core import iam_actions, iam_evaluator, responses
from ministack.core.router import extract_access_key_id

ASSUMED = ":assumed-role/"
"""A part of the ARN of a session of a role."""
LEDGER = "ledger"
"""Counts what was added to the ledger of usage, a second time."""
EVENT_SOURCE = "event-source"
"""Part of the user agent of what Lambda itself asks by a function's role: no request of that."""
IN_LEDGER = b'"usage#'
"""Part of the body of a request that adds to the ledger."""


class RequestCounts:
    """Requests by who signed them, since this was made. Each request is judged once by its action,
    whatever else it is judged by."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        action_of = iam_actions.extract_iam_action

        def counted(
            service: str,
            method: str,
            path: str,
            headers: Any,  # noqa: ANN401 - MiniStack's, passed on
            *rest: Any,  # noqa: ANN401 - the same
        ) -> Any:  # noqa: ANN401 - the same
            action = action_of(service, method, path, headers, *rest)
            key = extract_access_key_id(headers)
            if action and EVENT_SOURCE not in headers.get("user-agent", ""):
                self._counts[key, action] += 1
            if action == "dynamodb:UpdateItem" and IN_LEDGER in rest[0]:
                self._counts[key, LEDGER] += 1
            return action

        iam_actions.extract_iam_action = counted

    def by_role(self) -> dict[str, dict[str, int]]:
        """Return the counts of each role: of sessions that are known."""
        found: dict[str, dict[str, int]] = {}
        for (key, action), count in self._counts.copy().items():
            role = _role_of(key)
            if role:
                of_role = found.setdefault(role, {})
                of_role[action] = of_role.get(action, 0) + count
        return found


def _role_of(key: str) -> str:
    """Return the role whose session has an access key; "": it is no role's."""
    known = iam_evaluator.resolve_credential(key, responses.get_account_id())
    return getattr(known, "principal_arn", "").partition(ASSUMED)[2].partition("/")[0]
