"""All questions, in the order in which they are told."""

from __future__ import annotations

from lakebed.doctor.check import Check
from lakebed.doctor.checks.alarms import ALARM_CHECKS
from lakebed.doctor.checks.identity import IDENTITY_CHECKS
from lakebed.doctor.checks.machine import MACHINE_CHECKS
from lakebed.doctor.checks.platform import PLATFORM_CHECKS
from lakebed.doctor.checks.releases import RELEASE_CHECKS
from lakebed.doctor.checks.stores import STORE_CHECKS
from lakebed.doctor.checks.tables import TABLE_CHECKS
from lakebed.doctor.checks.wiring import WIRING_CHECKS
from lakebed.doctor.checks.work import WORK_CHECKS

ALL_CHECKS: tuple[Check, ...] = (
    *MACHINE_CHECKS,
    *IDENTITY_CHECKS,
    *RELEASE_CHECKS,
    *WIRING_CHECKS,
    *ALARM_CHECKS,
    *STORE_CHECKS,
    *PLATFORM_CHECKS,
    *TABLE_CHECKS,
    *WORK_CHECKS,
)
"""A door: who adds what can go wrong adds a tuple of checks here."""
