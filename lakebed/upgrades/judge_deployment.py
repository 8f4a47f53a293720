"""Decides whether this release may be deployed over the one that is there. Pure."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.errors import NewerFormatError, ReleaseSkippedError
from lakebed.model.formats import OLDEST, Formats, at_least
from lakebed.model.releases import BEFORE, RELEASES, THIS, order_of


def refuse_deployment(deployed: str | None, allowed: Callable[[], Formats | None]) -> None:
    """Refuse to deploy this release.

    deployed: the release that the instance names; "": it does not say; None: there is no instance.
    allowed: returns the forms that may be written there, as `TableRegistry.formats`.

    Raises:
        ReleaseSkippedError: the release before this one was never deployed. NewerFormatError: a
            newer release was, and its upgrade is finished.
    """
    order = order_of(deployed or "")
    if () < order < order_of(BEFORE.name):
        following = next(one.name for one in RELEASES if order_of(one.name) > order)
        raise ReleaseSkippedError(
            "a release would be skipped",
            found=deployed,
            at="the deployment of the instance",
            this=THIS.name,
            hint=f"deploy {following} first, and `lakebed upgrade finish` with that",
        )
    if order > order_of(THIS.name) and not at_least(THIS.formats, allowed() or OLDEST):
        raise NewerFormatError(
            "a newer release is deployed, and its upgrade is finished",
            deployed=deployed,
            this=THIS.name,
            hint=f"deploy {deployed}, or a newer one",
        )
