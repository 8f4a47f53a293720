"""Decides what is done while a source is faster than its table, by what is seen each turn. Pure.

A connection is congested when what the source has beyond what was read has grown for five seconds.
Then the rungs of its policy are tried, one after the other, until everything is read, or all but
what is taken in a second.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

CONGESTED_SECONDS = 5.0
"""Seconds that congestion grows until it counts."""
NEXT_SECONDS = 120.0
"""Seconds until the next rung is tried, if congestion has grown since the last one."""
KEEP_SECONDS = 5.0
"""Seconds between two adjustments of the share of records that `throttle` keeps to the rates."""

Rung = Literal["backpressure", "elastic", "spill", "throttle", "discard"]


class CongestionRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a policy for a source that is too fast.

    rungs: in order.
    throttle_floor: the share of records that is kept at the least.
    discard_fraction: the share of an hour's records of a source split that may be left out.
    lag_seconds_max: from which a connection lags; 0: never.
    """

    rungs: tuple[Rung, ...] = ("backpressure",)
    throttle_floor: float = 0.01
    discard_fraction: float = 0.1
    lag_seconds_max: float = 0.0


class Relief(msgspec.Struct, frozen=True):
    """The shares of records that a round keeps and leaves out.

    keep: the share of records that is kept, chosen by their positions; 1: all.
    discards: the share of an hour's records of a source split that may be left out, the newest; 0:
        none.
    """

    keep: float = 1.0
    discards: float = 0.0


NO_RELIEF = Relief()


class _Look(msgspec.Struct, frozen=True):
    """The figures that one turn saw.

    behind: records that the source has beyond those that were read.
    taken: records so far.
    """

    at: float
    behind: int
    taken: int


class Congestion:
    """Follows one connection in one process. All times are seconds of one monotonic clock."""

    def __init__(self, rules: CongestionRules) -> None:
        self._rules = rules
        self._looks: deque[_Look] = deque()
        self._rung: int | None = None
        self._tried: _Look | None = None
        self._keep = 1.0
        self._kept: _Look | None = None

    @property
    def rung(self) -> Rung | None:
        """Return what is done now; None: it is not congested."""
        return None if self._rung is None else self._rules.rungs[self._rung]

    @property
    def spills(self) -> bool:
        """Return whether records wait on the disk."""
        done = () if self._rung is None else self._rules.rungs[: self._rung + 1]
        return "spill" in done

    @property
    def relief(self) -> Relief:
        """Return what the next round leaves out."""
        done = () if self._rung is None else self._rules.rungs[: self._rung + 1]
        return Relief(
            self._keep if "throttle" in done else 1.0,
            self._rules.discard_fraction if "discard" in done else 0.0,
        )

    def see(
        self,
        now: float,
        *,
        behind: int,
        taken: int,
        is_caught_up: bool,
        is_full: bool = False,
    ) -> None:
        """Note what a turn saw.

        behind: records that the source has beyond those that were read.
        taken: all that were read so far.
        is_full: whether no more may wait on the disk.
        """
        look = _Look(now, behind, taken)
        if is_caught_up or self._is_almost_read(look):
            self._looks.clear()
            self._rung, self._tried, self._keep, self._kept = None, None, 1.0, None
            self._looks.append(look)
            return
        self._looks.append(look)
        while len(self._looks) > 1 and now - self._looks[1].at >= CONGESTED_SECONDS:
            self._looks.popleft()
        if self._rung is None:
            self._begin(look)
        else:
            self._go_on(look, is_full=is_full)

    def _is_almost_read(self, look: _Look) -> bool:
        """Return whether less is left than was taken in a second: of a source that never ends, no
        look finds that everything was read."""
        if self._rung is None:
            return False
        seconds = look.at - self._looks[0].at
        return seconds >= 1 and look.behind * seconds < look.taken - self._looks[0].taken

    def _begin(self, look: _Look) -> None:
        oldest = self._looks[0]
        if look.at - oldest.at >= CONGESTED_SECONDS and look.behind > oldest.behind:
            self._rung, self._tried, self._kept = 0, look, look

    def _go_on(self, look: _Look, *, is_full: bool) -> None:
        assert self._rung is not None
        assert self._tried is not None
        is_full = is_full and self.rung == "spill"
        if is_full or look.at - self._tried.at >= NEXT_SECONDS:
            grows = look.behind > self._tried.behind
            if (is_full or grows) and self._rung + 1 < len(self._rules.rungs):
                self._rung += 1
                self._kept = look
            self._tried = look
        if self.rung == "throttle":
            self._follow(look)

    def _follow(self, look: _Look) -> None:
        """Let the share that is kept follow what goes out of what comes in."""
        before = self._kept or look
        if look.at - before.at < KEEP_SECONDS:
            return
        out = look.taken - before.taken
        came = out + look.behind - before.behind
        if came > 0:
            wanted = self._keep * out / came
            self._keep = min(1.0, max(self._rules.throttle_floor, wanted))
        self._kept = look
