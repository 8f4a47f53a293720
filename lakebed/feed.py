"""Feeds of a lake, as callers of the library see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from lakebed.bootstrap.feeds.definitions import (
    apply_definitions,
    drop_definitions,
    feed_lifecycle,
    flush_feed,
)
from lakebed.bootstrap.feeds.file_feeds import feeds_of_file
from lakebed.bootstrap.feeds.pipelines import running_feeds
from lakebed.bootstrap.feeds.quarantine import found_quarantine, quarantined
from lakebed.bootstrap.feeds.replay import Callbacks, replay_quarantine
from lakebed.bootstrap.feeds.status import status_of_feeds
from lakebed.bootstrap.feeds.taken_records import TakenRecords
from lakebed.bootstrap.feeds.tap import tap
from lakebed.bootstrap.feeds.worker import feed_worker, is_instance, running_definitions
from lakebed.bootstrap.open_lake import OpenLake
from lakebed.config.definitions.toml_fields import at_of
from lakebed.config.feed_fields import plain
from lakebed.config.feeds import feed_file, file_of, joined
from lakebed.config.policies import PRESETS, Policy
from lakebed.config.policy_definitions import policy_of
from lakebed.errors import InvalidError, did_you_mean
from lakebed.feeds.known_definitions import (
    ConnectionDefinition,
    FeedDefinition,
    KnownDefinitions,
    read_definitions,
)
from lakebed.feeds.lifecycle import FeedStanding, standing_of
from lakebed.feeds.living_workers import LISTEN_SECONDS
from lakebed.feeds.operating.flush_feed import FLUSH_SECONDS, FeedFlushed
from lakebed.feeds.operating.missing_workers import MissingWorkers
from lakebed.feeds.run_feeds import run_feeds
from lakebed.model.feeds.definitions import KINDS, DefinitionKind
from lakebed.model.feeds.held_bytes import MEMORY_MIB
from lakebed.tables.change_table import clear_table

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebed.errors import LakebedError
    from lakebed.feeds.apply_definitions import PlannedChange
    from lakebed.feeds.operating.feed_status import FeedsStatus
    from lakebed.feeds.run_feeds import FeedDone, RunningFeed
    from lakebed.landing.quarantine_listing import QuarantinedRecord


class Feeds(OpenLake):
    """Feeds into tables of a lake: those that the lake defines and that were started, or those of a
    text in TOML, a section `[feed.NAME]` each.

    Positions are in the tables, so any process may run them, and several at once. Landing and
    quarantine tables are created where there are none.

    memory_mib: that this process may use: with less of it, rounds are committed earlier.

    Raises:
        InvalidError: the text says what there is not; a definition does not fit its table.
        TableMissingError: a connection's table is not there.
    """

    def __init__(
        self,
        lake: OpenLake,
        text: str | None = None,
        only: Collection[str] = (),
        *,
        memory_mib: int = MEMORY_MIB,
    ) -> None:
        app = lake._app  # noqa: SLF001 - a lake's own face
        super().__init__(app)
        app.feeds.held.fit_into(memory_mib)
        self._only = only
        self._feeds: list[RunningFeed[pa.RecordBatch]] | None = None
        if text is None:
            running_definitions(read_definitions(app.feeds.definitions), only)
        else:
            file = feed_file(text)
            if not file.feeds:
                hint = 'write a section [feed.NAME] with `files = "PATTERN"`'
                raise InvalidError("a file of feeds without a feed", hint=hint)
            self._feeds = feeds_of_file(app, file)

    def run(
        self,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[FeedDone], None] = lambda _: None,
        failed: Callable[[FeedDone, LakebedError], None] = lambda _done, _error: None,
    ) -> list[FeedDone]:
        """Take all records that there are now, each once. Returns what each feed has taken.

        should_stop: asked between commits.
        on_progress: called after each commit, with what its feed has taken so far.
        failed: called with each feed that failed, and why; others go on.
        """
        if self._feeds is None:
            known = read_definitions(self._app.feeds.definitions)
            has_functions = is_instance(self._app)
            found = running_definitions(known, self._only, has_functions=has_functions)
            self._feeds = list(running_feeds(self._app, *found))
        return run_feeds(
            self._feeds, should_stop=should_stop, on_progress=on_progress, failed=failed
        )

    def work(self, should_stop: Callable[[], bool]) -> None:
        """Work as one of any number of processes: take a fair share of all that was started in this
        lake, look now and then what has changed, and go on until it is to stop. Then commit what
        was read, and let go.

        should_stop: asked all the time.
        """
        feed_worker(self._app, self._only).run(should_stop)

    def missing_workers(self) -> Callable[[], int]:
        """Return what says, when it is asked again and again, how many workers elastic feeds want
        beside those that live; below zero: so many fewer."""
        return MissingWorkers(self._app.feeds.leases, self._app.clock).missing


class FeedDefinitions(TakenRecords):
    """Definitions of feeds, connections and policies, which a lake keeps, and what is wanted of
    feeds.

    Processes may change them at the same time: one change is whole before the next. A change that
    rests on what another process has changed since is planned anew.
    """

    def __init__(self, lake: OpenLake) -> None:
        super().__init__(lake._app)  # noqa: SLF001 - a lake's own face

    def apply(
        self, files: str | Mapping[str, str], *, dry_run: bool = False, above: int = 0
    ) -> list[PlannedChange]:
        """Make the lake hold what files of feeds say. Returns what changes, policies first. What
        they do not name stays.

        files: the text of one, or of several by their names.
        dry_run: say what would change, and change nothing.
        above: let each of them have a version above this, as tables know one that is so new: after
            `feeds.sqlite`, or the registry's table, was restored to an earlier day.

        Raises:
            InvalidError: something in them cannot be; nothing was changed. It has the path of the
                field, what is allowed, and the nearest name.
        """
        texts = {"the file": files} if isinstance(files, str) else files
        file = joined({name: feed_file(text) for name, text in texts.items()})
        return apply_definitions(self._app).run(file, dry_run=dry_run, above=above)

    def feeds(self) -> list[FeedStanding]:
        """Return how each feed stands, by name."""
        known = self._known()
        return [standing_of(known, name) for name in sorted(known.file.feeds)]

    def standing(self, feed: str) -> FeedStanding:
        """Return how a feed stands. Raises: InvalidError: there is none of that name."""
        return standing_of(self._known(), feed)

    def status(
        self, feed: str | None = None, *, listen_seconds: float = LISTEN_SECONDS
    ) -> FeedsStatus:
        """Return how a feed does, or all: what is wanted, what their tables say, and what workers
        that live say.

        listen_seconds: for workers that are silent; it ends when all were heard.

        Raises:
            InvalidError: there is none of that name.
        """
        return status_of_feeds(self._app, feed, listen_seconds)

    def quarantined(
        self,
        feed: str,
        *,
        connection: str | None = None,
        limit: int = 50,
        with_values: bool = False,
    ) -> Iterator[QuarantinedRecord]:
        """Yield the first records of a feed of which no row could be made, by connection, source
        split and position. The table `FEED_quarantine` has them all.

        connection: only of this one, by its name, or by its id, if it is not defined any more.
        limit: records at the most.
        with_values: with their values and keys.

        Raises:
            InvalidError: there is no feed or connection of that name.
        """
        return quarantined(self._app, feed, connection, limit=limit, with_values=with_values)

    def replay(
        self,
        feed: str,
        *,
        text: str | None = None,
        connection: str | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[FeedDone], None] = lambda _: None,
        failed: Callable[[FeedDone, LakebedError], None] = lambda _done, _error: None,
    ) -> list[FeedDone]:
        """Take the records in quarantine of a feed once more, by its definitions of now: those that
        are rows now get into the table, the others stay. Returns what became of them, by
        connection. It may be killed anywhere, or run twice at once: no record is there twice.

        text: of the file that defines the feed; None: the lake does.
        connection: only of this one.
        should_stop: asked between commits.
        on_progress: called after each commit, with what its connection has taken so far.
        failed: called with each connection whose replay failed, and why; others go on.

        Raises:
            InvalidError: there is no feed or connection of that name.
            TableMissingError: a connection's table is not there.
        """
        callbacks = Callbacks(should_stop=should_stop, on_progress=on_progress, failed=failed)
        return replay_quarantine(self._app, feed, connection, text, callbacks)

    def quarantine_table(self, feed: str) -> str:
        """Return the name of a feed's quarantine table: its rows are those of any table, also of
        records that were replayed since.

        Raises:
            InvalidError: there is no feed of that name. TableMissingError: nothing was ever bad.
        """
        return found_quarantine(self._app, feed).name

    def drop_quarantine(self, feed: str) -> None:
        """Remove all records in quarantine of a feed, for good. Their counts stay in the ledger.

        Raises:
            As `quarantine_table`.
        """
        clear_table(found_quarantine(self._app, feed), None)

    def tap(
        self,
        feed: str | None = None,
        *,
        text: str | None = None,
        connection: str | None = None,
        limit: int = 10,
        from_start: bool = False,
        wait_seconds: float = 1.0,
    ) -> Iterator[pa.RecordBatch]:
        """Yield what would become of a feed's next records: their source split, position, verdict,
        detail and row. Nothing is committed, created, claimed or acknowledged.

        feed: None: the only one of the text.
        text: of a file of feeds; None: the lake's definitions count.
        connection: by which they are decoded; None: the only one; of a feed without one: as they
            come.
        from_start: from where a feed begins; else from what was committed.
        wait_seconds: end when no record came for so long.

        Raises:
            InvalidError: there is no feed or connection of that name, or several.
            TableMissingError: a table that must be read is not there.
        """
        found = tap(self._app, feed, text, connection, from_start=from_start)
        return found.records(limit=limit, wait_seconds=wait_seconds)

    def describe(self, feed: str) -> tuple[FeedDefinition, list[ConnectionDefinition]]:
        """Return a feed and its connections, each with all parameters of its policy.

        Raises:
            InvalidError: there is none of that name.
        """
        known = self._known()
        return known.feed(feed), known.connections_of(feed)

    def policies(self) -> dict[str, Policy]:
        """Return the parameters of each policy by its name: those that every lake has, and those
        that were defined."""
        defined = self._known().file.policies
        return {name: policy_of(name, defined) for name in (*PRESETS, *sorted(defined))}

    def define(
        self, kind: DefinitionKind, name: str, said: Mapping[str, object], *, dry_run: bool = False
    ) -> PlannedChange:
        """Create or change a definition. Returns what changes.

        kind: "feed", "connection" or "policy".
        said: what its section in a file would say: `{"source": {"files": "*.log"}}`.
        dry_run: as `apply`.

        Raises:
            InvalidError: it cannot be; nothing was changed.
        """
        if kind not in KINDS:
            hint = did_you_mean(str(kind), KINDS, what="kind")
            raise InvalidError("no such kind of definition", kind=ascii(kind)[:80], hint=hint)
        file = file_of({(kind, name): plain(said, at_of(kind, name))})
        (change,) = apply_definitions(self._app).run(file, dry_run=dry_run)
        return change

    def start(self, feed: str) -> FeedStanding:
        """Let workers take a feed's records: of one that is stopped or suspended, or has failed.

        Raises:
            InvalidError: there is none of that name; it runs.
        """
        return feed_lifecycle(self._app).run("start", feed)

    def stop(self, feed: str) -> FeedStanding:
        """Let workers commit what they have read of a feed, and give its source splits up.

        Raises:
            InvalidError: there is none of that name; it is stopped.
        """
        return feed_lifecycle(self._app).run("stop", feed)

    def suspend(self, feed: str) -> FeedStanding:
        """Let workers commit what they have read of a feed, and keep its source splits for ten
        minutes.

        Raises:
            InvalidError: there is none of that name; it does not run.
        """
        return feed_lifecycle(self._app).run("suspend", feed)

    def resume(self, feed: str) -> FeedStanding:
        """Let a feed that is suspended go on.

        Raises:
            InvalidError: there is none of that name; it is not suspended.
        """
        return feed_lifecycle(self._app).run("resume", feed)

    def flush(self, feed: str, *, wait_seconds: float = FLUSH_SECONDS) -> FeedFlushed:
        """Let workers commit what they have read of a feed, and wait until they say that they did.
        Its landing and connections count, each for itself: what is landed with this gets into
        tables as their connections read it.

        wait_seconds: at the most.

        Raises:
            InvalidError: there is none of that name; it does not run.
        """
        return flush_feed(self._app).run(feed, wait_seconds=wait_seconds)

    def drop(self, feed: str, *, cascade: bool = False) -> list[str]:
        """Forget a feed that is stopped. Returns what was dropped. Tables and rows stay.

        cascade: forget its connections, too.

        Raises:
            InvalidError: there is none of that name, it is not stopped, or has connections.
        """
        return self._drop("feed", feed, cascade=cascade)

    def disconnect(self, connection: str) -> list[str]:
        """Forget a connection, also of a feed that runs. Returns what was dropped. Rows stay.

        Raises:
            InvalidError: there is none of that name.
        """
        return self._drop("connection", connection)

    def drop_policy(self, policy: str) -> list[str]:
        """Forget a policy that nothing names. Returns what was dropped.

        Raises:
            InvalidError: there is none of that name; it is in use; every lake has it.
        """
        return self._drop("policy", policy)

    def _drop(self, kind: DefinitionKind, name: str, *, cascade: bool = False) -> list[str]:
        dropped = drop_definitions(self._app).run(kind, name, cascade=cascade)
        return [f"{of}.{called}" for of, called in dropped]

    def _known(self) -> KnownDefinitions:
        return read_definitions(self._app.feeds.definitions)
