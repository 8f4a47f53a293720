"""Reports of jobs in the stream of the tracker's table, as Lambda hands them to a function."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from lakebed.ports.job_tracker import JobReport, report_in


def reports_in_stream(records: Iterable[Mapping[str, Any]]) -> list[JobReport]:
    """Return the reports of which records say that they became the newest of their jobs, in order.

    Records of other items, and reports that this release does not know of, are left out.
    """
    found = []
    for record in records:
        image = record.get("dynamodb", {}).get("NewImage", {})
        body = image.get("body", {}).get("B")
        report = report_in(base64.b64decode(body)) if body else None
        if report is not None:
            found.append(report)
    return found
