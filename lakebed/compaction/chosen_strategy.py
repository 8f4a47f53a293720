"""The strategy that a table's settings choose: one of ours, or a user's, whose answers are checked.

A user's strategy may think for seconds. So it is asked by figures that were read before, while
others read and commit; what it gives is held against the state when jobs are made. What it gives
for a leaf is taken as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import msgspec

from lakebed.compaction.free_leaves import free_leaves, fullest_first
from lakebed.compaction.plan import FAN_IN_MAX, plan_compactions
from lakebed.config.settings import OUR_STRATEGIES, TableSettings
from lakebed.errors import StrategyError
from lakebed.model.files import FileReference
from lakebed.model.names import (
    MICROS_PER_SECOND,
    FileName,
    Micros,
    PartitionId,
    TransactionNumber,
    base_of,
)
from lakebed.ports.compaction_strategies import CompactionStrategies, LeafFile
from lakebed.statestore.head import TableHead
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.time_records import written_at

GroupsOf = Callable[[PartitionId, Sequence[FileReference]], list[tuple[FileName, ...]]]
"""Returns groups of a leaf's files that no job holds, each to become a job."""

FILES_AT_ONCE = 10_000
"""Files whose figures are read at once: as many as a leaf has at most. It bounds memory, and for
how long others wait for the state."""


class StrategyAnswers(msgspec.Struct, frozen=True):
    """The answers of a user's strategy.

    settings: that it was asked by.
    file_groups: by leaf, of files that no job held when it was asked.
    """

    settings: TableSettings
    file_groups: dict[PartitionId, list[tuple[FileName, ...]]]

    def still_free(
        self, leaf: PartitionId, files: Sequence[FileReference]
    ) -> list[tuple[FileName, ...]]:
        """Return the groups of a leaf whose files are all there, and held by no job. files: that
        are so now."""
        free = {reference.file.name for reference in files}
        file_groups = self.file_groups.get(leaf, ())
        return [file_group for file_group in file_groups if free.issuperset(file_group)]


def ask_strategy(
    strategies: CompactionStrategies, head: TableHead, now: Micros
) -> StrategyAnswers | None:
    """Ask a table's strategy about leaves that may have another job, until the table has as many as
    it may have. The state is not held meanwhile. None: the strategy is one of ours.

    Raises:
        StrategyError: a user's strategy failed, or gave what cannot be.
    """
    with head.holding() as state:  # it was followed by who looked for the time
        if state.settings().compaction_strategy in OUR_STRATEGIES:
            return None
    with head.reading() as state:
        settings = state.settings()
        room = settings.table_jobs_max - len(state.jobs())
    answers = StrategyAnswers(settings, {})
    if room <= 0 or settings.compaction_strategy in OUR_STRATEGIES:
        return answers
    with strategies.opened(settings) as ask:
        for one in _questions(head, now):
            file_groups = checked_groups(
                ask(one.shown), one.names, strategy=settings.compaction_strategy
            )
            answers.file_groups[one.leaf] = file_groups
            room -= min(len(file_groups), one.allowed)
            if room <= 0:
                break
    return answers


def groups_of_now(
    settings: TableSettings, answers: StrategyAnswers | None, *, everything: bool
) -> GroupsOf:
    """Return what groups files by the settings of now.

    answers: of a user's strategy. They count if the settings are those that it was asked by: else
        it is asked again the next time.
    everything: all files are merged, whatever is chosen.
    """
    if everything or settings.compaction_strategy in OUR_STRATEGIES:
        plan = partial(plan_compactions, settings=settings, everything=everything)
        return lambda _, files: plan(files)
    if answers is not None and answers.settings == settings:
        return answers.still_free
    return lambda _leaf, _files: []


class _Question(msgspec.Struct, frozen=True):
    """A question to a strategy about one leaf.

    shown: its files that no job holds, oldest first.
    names: of them, by how they are shown.
    allowed: how many jobs the leaf may have more.
    """

    leaf: PartitionId
    shown: list[LeafFile]
    names: dict[str, FileName]
    allowed: int


def _questions(head: TableHead, now: Micros) -> Iterator[_Question]:
    """Yield what is asked, the leaves with most files first. The state is held while some of it is
    read, and not while it is asked."""
    with head.reading() as state:
        leaves = iter(fullest_first(state))
    while some := list(islice(leaves, 1)):
        files = some[0].files
        for leaf in leaves:
            some.append(leaf)
            files += leaf.files
            if files >= FILES_AT_ONCE:
                break
        with head.reading() as state:
            questions = [
                _question(state, leaf.partition, leaf.files, leaf.allowed, now)
                for leaf in free_leaves(state, some)
            ]
        yield from questions


def _question(
    state: TableState,
    leaf: PartitionId,
    files: Sequence[FileReference],
    allowed: int,
    now: Micros,
) -> _Question:
    oldest_first = sorted(files, key=lambda r: r.file.name)
    shown = [_shown(state, reference, now) for reference in oldest_first]
    names = {s.name: r.file.name for s, r in zip(shown, oldest_first, strict=True)}
    return _Question(leaf, shown, names, allowed)


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
