"""Decides what may be done next in an upgrade, by what is known of a lake and its processes.
Pure."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from lakebed.errors import NewerFormatError, OlderProcessError, ReleaseSkippedError
from lakebed.model.formats import OLDEST, Formats, at_least, formats_of
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.releases import BEFORE, THIS, order_of, release_allowed
from lakebed.ports.processes import SILENT_SECONDS, ProcessReport

SILENT = "does not say"
"""Text in place of a release that is not known."""


class UpgradeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of an upgrade.

    release: of this program.
    gate: the newest release all of whose forms may be written.
    deployed: the release that the instance was deployed of; "": it does not say; None: the lake
        is a directory.
    allowed: the newest forms that may be written.
    newest: those that this program writes.
    processes: all that may live.
    """

    release: str
    gate: str
    deployed: str | None
    allowed: Formats
    newest: Formats
    processes: list[ProcessReport]

    def older(self) -> list[ProcessReport]:
        """Return the processes of older releases, the oldest release first."""
        found = [one for one in self.processes if is_older(one)]
        return sorted(found, key=lambda one: (order_of(one.release), one.process))

    def is_deployed(self) -> bool:
        """Return whether no older release is deployed."""
        return self.deployed is None or order_of(self.deployed) >= order_of(THIS.name)

    def is_finished(self) -> bool:
        """Return whether all may be written that this program writes."""
        return at_least(self.allowed, self.newest)


class UpgradePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that are to be done for an upgrade, in order.

    steps: one sentence each; none: nothing is.
    """

    status: UpgradeStatus
    steps: list[str]


def status_of(
    allowed: Formats | None, processes: list[ProcessReport], deployed: str | None
) -> UpgradeStatus:
    """Return where an upgrade stands. allowed: as the lake's record says; None: it has none."""
    allowed = allowed or OLDEST
    return UpgradeStatus(
        release=THIS.name,
        gate=release_allowed(allowed).name,
        deployed=deployed,
        allowed=allowed,
        newest=THIS.formats,
        processes=processes,
    )


def is_older(report: ProcessReport) -> bool:
    """Return whether a process is of an older release, or does not read all that this one
    writes."""
    reads = formats_of(report.reads)
    if order_of(report.release) < order_of(THIS.name) or reads is None:
        return True
    return not at_least(reads, THIS.formats)


def plan_of(status: UpgradeStatus) -> UpgradePlan:
    """Return what is to be done next.

    Raises:
        NewerFormatError: this program is older than the lake. ReleaseSkippedError: two releases
        apart may not work together.
    """
    refuse_newer(status)
    refuse_skipped(status)
    steps = []
    if not status.is_deployed():
        steps.append(
            f"deploy {THIS.name}, stack by stack as `cdk deploy --all` does; until the upgrade is"
            f" finished {BEFORE.name} may be deployed again"
        )
    if older := status.older():
        steps.append(
            f"wait until {len(older)} of older releases have ended, or end them:"
            " `lakebed upgrade status` names them"
        )
    if not status.is_finished():
        steps.append(
            f"`lakebed upgrade finish` allows {_risen(status)}; {BEFORE.name} cannot open what is"
            " written from then on, and may not be deployed again"
        )
    return UpgradePlan(status=status, steps=steps)


def refuse_newer(status: UpgradeStatus) -> None:
    """Raise NewerFormatError if this program is older than the lake's gate, or than what deployed
    the instance."""
    if status.deployed is not None and order_of(status.deployed) > order_of(THIS.name):
        raise NewerFormatError(
            "a newer release deployed the instance", deployed=status.deployed, this=THIS.name
        )
    if not at_least(status.newest, status.allowed):
        raise NewerFormatError(
            "the lake allows newer forms than this release reads",
            allowed=_text(status.allowed),
            reads=_text(status.newest),
            this=THIS.name,
        )


def refuse_skipped(status: UpgradeStatus) -> None:
    """Raise ReleaseSkippedError if something lives, or is deployed, that is older than the release
    before this one. Who does not say its release may be that one."""
    known = [(one.release, one.program) for one in status.processes]
    known.append((status.deployed or "", "the deployment of the instance"))
    skipped = sorted(
        (order_of(release), release, program)
        for release, program in known
        if () < order_of(release) < order_of(BEFORE.name)
    )
    if skipped:
        _, release, program = skipped[0]
        raise ReleaseSkippedError(
            "a release would be skipped",
            found=release,
            at=program,
            this=THIS.name,
            hint=f"upgrade to {BEFORE.name} and finish that first, or end what is of {release}",
        )


def refuse_older(status: UpgradeStatus) -> None:
    """Raise OlderProcessError if an older release is deployed, or a process of one may live."""
    if not status.is_deployed():
        raise OlderProcessError(
            "an older release is deployed",
            release=status.deployed or SILENT,
            this=THIS.name,
            hint="deploy this release: `cdk deploy --all -c instance=NAME`, then finish",
        )
    if older := status.older():
        first = older[0]
        raise OlderProcessError(
            "a process of an older release may live",
            process=first.program,
            release=first.release or SILENT,
            this=THIS.name,
            processes=len(older),
            hint=_hint(status, older),
        )


def _hint(status: UpgradeStatus, older: list[ProcessReport]) -> str:
    ending = "end it" if len(older) == 1 else "end them, which `lakebed upgrade status` names"
    if status.deployed is None:
        return f"{ending}, then finish"
    silent = Micros(max(one.at for one in older) + SILENT_SECONDS * MICROS_PER_SECOND)
    seconds = max(0, silent) // MICROS_PER_SECOND
    return f"{ending}, or wait: who is silent until {_utc(seconds)} does not count"


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _risen(status: UpgradeStatus) -> str:
    before, after = map(msgspec.structs.asdict, (status.allowed, status.newest))
    return ", ".join(f"{name} {after[name]}" for name in after if after[name] > before[name])


def _text(formats: Formats) -> str:
    named = msgspec.structs.asdict(formats)
    return ",".join(f"{name}:{number}" for name, number in named.items())
