"""The strategy that a table's settings choose: one of ours, or a user's, whose answers are checked.

What a user's strategy gives for a leaf is taken as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from lakebed.compaction.plan import FAN_IN_MAX, plan_compactions
from lakebed.config.settings import OUR_STRATEGIES
from lakebed.errors import StrategyError
from lakebed.model.files import FileReference
from lakebed.model.names import MICROS_PER_SECOND, FileName, Micros, TransactionNumber, base_of
from lakebed.ports.compaction_strategies import Ask, CompactionStrategies, LeafFile
from lakebed.statestore.table_state.entry_times import written_at
from lakebed.statestore.table_state.state import TableState

GroupsOf = Callable[[Sequence[FileReference]], list[tuple[FileName, ...]]]
"""Returns groups of a leaf's files that no job holds, each to become a job."""


@contextmanager
def chosen_strategy(
    strategies: CompactionStrategies, state: TableState, now: Micros, *, everything: bool = False
) -> Iterator[GroupsOf]:
    """Yield the strategy of a table. everything: one that merges all files, whatever is chosen.

    What is yielded raises StrategyError: a user's strategy failed, or gave what cannot be.
    """
    settings = state.settings()
    if everything or settings.compaction_strategy in OUR_STRATEGIES:
        yield partial(plan_compactions, settings=settings, everything=everything)
        return
    with strategies.opened(settings) as ask:
        yield partial(_asked, ask, state, now)


def _asked(
    ask: Ask, state: TableState, now: Micros, files: Sequence[FileReference]
) -> list[tuple[FileName, ...]]:
    oldest_first = sorted(files, key=lambda r: r.file.name)
    shown = [_shown(state, reference, now) for reference in oldest_first]
    answer = ask(shown)
    return checked_groups(
        answer,
        {s.name: r.file.name for s, r in zip(shown, oldest_first, strict=True)},
        strategy=state.settings().compaction_strategy,
    )


def _shown(state: TableState, reference: FileReference, now: Micros) -> LeafFile:
    file = reference.file
    age = now - written_at(state, TransactionNumber(base_of(file.name) + 1))
    return LeafFile(
        name=file.name.hex(),
        rows=reference.rows,
        bytes=file.size,
        seconds=max(0, age // MICROS_PER_SECOND),
    )


def checked_groups(
    answer: object, files: dict[str, FileName], *, strategy: str
) -> list[tuple[FileName, ...]]:
    """Return the groups that a strategy gave. files: those that it was asked about, by name.

    Raises:
        StrategyError: it is no list of lists of these names, each at most once, 2 to 500 in each.
    """

    def refused(problem: str, **facts: object) -> StrategyError:
        hint = "give lists of 2 to 500 names of the files that it was called with, each name once"
        return StrategyError(problem, strategy=strategy, **facts, hint=hint)

    if not isinstance(answer, list) or not all(
        isinstance(file_group, list) for file_group in answer
    ):
        raise refused("a strategy gave no list of lists", got=ascii(answer)[:80])
    left = dict(files)
    file_groups = []
    for file_group in answer:
        if not 2 <= len(file_group) <= FAN_IN_MAX:
            raise refused("a strategy gave a group of a wrong size", files=len(file_group))
        for name in file_group:
            if not isinstance(name, str) or name not in files:
                raise refused("a strategy named a file that it was not asked about", file=name)
            if name not in left:
                raise refused("a strategy named a file twice", file=name)
            del left[name]
        file_groups.append(tuple(files[name] for name in file_group))
    return file_groups
