"""Twins of landing tables and their children, each with exactly one rule broken."""

from __future__ import annotations

from typing import Any

import pytest

from lakebed.feeds.operating.position_admin import positions_in
from lakebed.feeds.pipeline import Pipeline, Turn
from lakebed.landing.landing_source import LandingSource
from tests.simulation import violation as v
from tests.simulation.feeds.fed_twins import FedTwin
from tests.simulation.feeds.fed_world import CONNECTION
from tests.simulation.feeds.landed_world import PARENT, LandedWorld
from tests.simulation.machine import Machine


class WaitsForItsChild(Pipeline[list[Any]]):
    """A pipeline that lands nothing more before its child has taken what was landed."""

    machine: Machine

    def turn(self, *, is_draining: bool = False) -> Turn:
        """Take a turn, or wait."""
        landed = positions_in(self.table, PARENT)
        taken = positions_in(self.machine.catalog.find("fed"), CONNECTION)
        ends = {split: at.next for split, at in landed.items() if at.next}
        if any(split not in taken or taken[split].next != end for split, end in ends.items()):
            return Turn(has_read=False, committed=None)
        return super().turn(is_draining=is_draining)


class SlowedByItsChild(LandedWorld):
    """R22: a parent that waits for its slowest child."""

    parent_pipeline = WaitsForItsChild

    def _made_parent(
        self, machine: Machine, owner: int, *, is_calm: bool = False
    ) -> Pipeline[list[Any]]:
        made = super()._made_parent(machine, owner, is_calm=is_calm)
        assert isinstance(made, WaitsForItsChild)
        made.machine = machine
        return made


def gaps_of_the_landing_are_passed_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """R15, R22: a child that is behind reads on with the first record that is there."""
    monkeypatch.setattr(LandingSource, "_is_lost", lambda *_: False)


LANDED_TWINS: dict[str, FedTwin] = {
    "waits for its slowest child": FedTwin(frozenset({v.ENDS}), world=SlowedByItsChild),
    "child passes a gap in silence": FedTwin(
        frozenset({v.FED_LEDGER}),
        patches=(gaps_of_the_landing_are_passed_in_silence,),
        world=LandedWorld,
    ),
}
