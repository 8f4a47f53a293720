"""Plans, watches and finishes the upgrade of a lake to this release."""

from __future__ import annotations

from lakebed.model.releases import THIS
from lakebed.ports.clock import Clock
from lakebed.ports.processes import ProcessReports
from lakebed.ports.table_registry import TableRegistry
from lakebed.upgrades.judge_upgrade import (
    UpgradePlan,
    UpgradeStatus,
    plan_of,
    refuse_newer,
    refuse_older,
    refuse_skipped,
    status_of,
)


class UpgradeLake:
    """The upgrade of one lake. deployed: see `UpgradeStatus`.

    Each of its methods raises UnavailableError or DeniedError when the registry or the reports
    cannot be read; nothing was changed then.
    """

    def __init__(
        self,
        *,
        registry: TableRegistry,
        processes: ProcessReports,
        clock: Clock,
        deployed: str | None,
    ) -> None:
        self._registry = registry
        self._processes = processes
        self._clock = clock
        self._deployed = deployed

    def status(self) -> UpgradeStatus:
        """Return where it stands."""
        processes = self._processes.living(self._clock.now())
        return status_of(self._registry.formats(), processes, self._deployed)

    def plan(self) -> UpgradePlan:
        """Return what is to be done next. Raises: as `plan_of`."""
        return plan_of(self.status())

    def finish(self) -> UpgradeStatus:
        """Allow all forms that this release writes, for ever. Again does nothing.

        An older process that begins meanwhile, or said nothing of itself, loses no job: it gives
        back what it cannot read.

        Raises:
            NewerFormatError, ReleaseSkippedError: as `plan_of`; nothing was changed.
            OlderProcessError: a process of an older release may live, or one is deployed; the same.
            UnknownOutcomeError: no answer came; call it again.
        """
        status = self.status()
        for refuse in (refuse_newer, refuse_skipped, refuse_older):
            refuse(status)
        self._registry.raise_formats(THIS.formats)
        return self.status()
