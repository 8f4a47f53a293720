"""Runs as a strategy's process: finds the entry point, and asks it about leaf after leaf.

What the strategy prints goes to the log: it is no answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from lakebed.config.packages import STRATEGIES, installed_steps
from lakebed.config.settings import TableSettings
from lakebed.ports.compaction_strategies import LeafFile

PROBLEM_CHARACTERS_MAX = 500

Strategy = Callable[[list[LeafFile], TableSettings], Iterable[Iterable[str]]]


class Begin(msgspec.Struct, frozen=True, array_like=True):
    """The first message that the process of a strategy receives."""

    settings: TableSettings


class LeafAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A strategy's answer for one leaf.

    file_groups: as the strategy gave them, unchecked.
    problem: why there are none.
    known: the strategies that there are, where there is none of the name.
    """

    file_groups: Any = None
    problem: str = ""
    known: tuple[str, ...] | None = None


def main() -> None:
    """Answer each line of the standard input, until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    settings = msgspec.json.decode(sys.argv[2], type=Begin).settings
    strategy = _found(settings.compaction_strategy)
    for line in sys.stdin.buffer:
        answer = strategy
        if not isinstance(answer, LeafAnswer):
            answer = _asked(answer, msgspec.json.decode(line, type=list[LeafFile]), settings)
        answers.write(_encoded(answer) + b"\n")
        answers.flush()
    os._exit(0)  # whatever threads it has begun


def _found(name: str) -> Strategy | LeafAnswer:
    points = installed_steps(STRATEGIES)
    if name not in points:
        return LeafAnswer(problem="no such strategy is installed", known=tuple(sorted(points)))
    problem = _Problem("a strategy cannot be loaded")
    with problem:
        found: Strategy = points[name].load()
        return found
    return LeafAnswer(problem=problem.said)


def _asked(strategy: Strategy, files: list[LeafFile], settings: TableSettings) -> LeafAnswer:
    problem = _Problem("a strategy failed")
    with problem:
        return LeafAnswer(file_groups=[list(names) for names in strategy(files, settings)])
    return LeafAnswer(problem=problem.said)


def _encoded(answer: LeafAnswer) -> bytes:
    try:
        return msgspec.json.encode(answer)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        return msgspec.json.encode(LeafAnswer(problem=_said("a strategy gave no names", error)))


def _said(problem: str, error: BaseException) -> str:
    return f"{problem}: {type(error).__name__}: {error}"[:PROBLEM_CHARACTERS_MAX]


class _Problem:
    """Around a user's code: whatever it raises, an end of the process too, is said and no more."""

    def __init__(self, problem: str) -> None:
        self.said = problem

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is not None:
            self.said = _said(self.said, error)
        return True
