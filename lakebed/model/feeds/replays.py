"""Names of replays. A replay takes records of the quarantine once more, as a source split of its
own: it has a position, a tally and a quarantine, so what holds of source splits holds of it."""

from __future__ import annotations

import re

import msgspec

from lakebed.errors import CorruptError
from lakebed.model.feeds.positions import Position

_NAME = re.compile(r"replay:([1-9][0-9]{0,8}):(.+)", re.DOTALL)


class ReplayName(msgspec.Struct, frozen=True):
    """A replay of one source split's records in quarantine.

    number: 1 for the first one of its source split.
    split: the source split that the records came from.
    """

    number: int
    split: str

    @property
    def name(self) -> str:
        """Return the name of the source split that the replay is itself."""
        return f"replay:{self.number}:{self.split}"


def replay_of(name: str) -> ReplayName | None:
    """Return the replay that a source split is. None: it is one of a source."""
    found = _NAME.fullmatch(name)
    return None if found is None else ReplayName(int(found[1]), found[2])


def origin_of(name: str) -> str:
    """Return the source split that records came from, whether they are replayed or not."""
    found = replay_of(name)
    return name if found is None else found.split


def end_of(position: Position) -> int:
    """Return behind which position of its source split a replay ends. The first commit of a replay
    fixes it, so two that begin at once take the same records.

    Raises:
        CorruptError: the position is none of a replay.
    """
    if not position.resume.isdigit():
        raise CorruptError("not the position of a replay", revision=position.revision)
    return int(position.resume)


def resume_of(end: int) -> bytes:
    """Return what a replay's position holds of its end."""
    return b"%d" % end
