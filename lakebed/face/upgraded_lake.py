"""Brings a lake to this release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.face.restored_lake import RestoredLake

if TYPE_CHECKING:
    from lakebed.upgrades.judge_upgrade import UpgradePlan, UpgradeStatus


class UpgradedLake(RestoredLake):
    """A lake on which two releases may work, while one replaces the other."""

    def upgrade_status(self) -> UpgradeStatus:
        """Return which forms may be written to this lake, which this release can write, and the
        processes that may live, with their releases."""
        return self._app.inspection.upgrade().status()

    def plan_upgrade(self) -> UpgradePlan:
        """Return what is to be done next, so that the lake is used by this release alone. Changes
        nothing.

        Raises:
            NewerFormatError: this release is older than what the lake allows, or than what deployed
                the instance.
            ReleaseSkippedError: a process that lives, or the instance, is two releases older.
        """
        return self._app.inspection.upgrade().plan()

    def finish_upgrade(self) -> UpgradeStatus:
        """Allow all forms that this release can write. It is never taken back: older releases
        cannot open what is written from then on. Again does nothing.

        Raises:
            OlderProcessError: a process of an older release may live, or one is deployed.
            NewerFormatError, ReleaseSkippedError: as `plan_upgrade`. Nothing was changed.
        """
        return self._app.inspection.upgrade().finish()
