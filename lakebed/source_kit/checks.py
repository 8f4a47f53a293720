"""Checks what a source with an order promises. Each check takes a trial of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from lakebed.errors import InvalidError, UnavailableError
from lakebed.feed_errors import PositionGoneError
from lakebed.source_kit.trial import (
    PLENTY,
    SourceTrial,
    all_of,
    found,
    one,
    require,
    same,
    values,
)

Check = Callable[[SourceTrial], None]

VALUES = [b"value %d" % number * (number % 3) for number in range(30)]
TRIES_MAX = 60
"""Most tries of a read, while the connection is away or has just come back."""


def all_records_come_in_order_in_batches_of_any_size(trial: SourceTrial) -> None:
    """Read with bounds below a record, above some, and above all."""
    trial.write("a", *VALUES)
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        for bytes_max in (1, 20, 100, PLENTY):
            begin = source.start(split)
            with closing(source.open(split, begin)) as reader:
                batches = all_of(trial, reader, begin, len(VALUES), bytes_max)
                came = [value for records in batches for value in values(records)]
                require(came == VALUES, f"{bytes_max=}: {came}")
                require(reader.read(bytes_max=PLENTY) is None, "more came than was written")
                require(reader.behind() in (0, None), f"{reader.behind()} behind the last record")


def a_position_gives_the_same_records_in_any_process(trial: SourceTrial) -> None:
    """Read twice, from two views, and again after more was written."""
    trial.write("a", b"one", b"two", b"three")
    with closing(trial.connect()) as source, closing(trial.connect()) as other:
        split = found(trial, source, "a")
        begin = source.start(split)
        with closing(source.open(split, begin)) as reader:
            first = list(all_of(trial, reader, begin, 3, bytes_max=4))
        trial.write("a", b"four")
        require(found(trial, other, "a") == split, "another process sees another source split")
        for view in (source, other):
            with closing(view.open(split, begin)) as reader:
                again = list(all_of(trial, reader, begin, 3, bytes_max=4))
            require(len(again) == len(first), "the second time it is other records")
            for before, now in zip(first, again, strict=True):
                require(same(before, now), f"the second time it is {now}, and was {before}")


def every_end_is_a_position_to_begin_at(trial: SourceTrial) -> None:
    """Read record by record; open anew behind each."""
    trial.write("a", *VALUES[1:8])
    with closing(trial.connect()) as source, closing(trial.connect()) as other:
        split = found(trial, source, "a")
        begin = source.start(split)
        with closing(source.open(split, begin)) as reader:
            ends = list(all_of(trial, reader, begin, 7, bytes_max=1))
        for number, records in enumerate(ends[:-1], 1):
            for resume in (records.resume, b""):
                if not resume and records.resume and number > 1:
                    continue  # what came with the position is the rule
                with closing(other.open(split, records.end, resume=resume)) as reader:
                    came = values(one(trial, reader))
                    require(came[0] == VALUES[1:8][number], f"behind record {number}: {came}")


def what_is_written_later_comes_later(trial: SourceTrial) -> None:
    """Read to the end, write, read on, in a reader that stays open beside a second one."""
    trial.write("a", b"one", b"two")
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        begin = source.start(split)
        with closing(source.open(split, begin)) as reader:
            first = list(all_of(trial, reader, begin, 2))
            end = first[-1].end
            require(reader.read(bytes_max=PLENTY) is None, "more came than was written")
            trial.write("a", b"three")
            with closing(source.open(split, begin)) as second:
                came = [value for each in all_of(trial, second, begin, 3) for value in values(each)]
                require(came == [b"one", b"two", b"three"], f"the second reader: {came}")
            require(values(one(trial, reader)) == [b"three"], "the first reader lost its position")
        with closing(source.open(split, end, resume=first[-1].resume)) as reader:
            require(values(one(trial, reader)) == [b"three"], "a new reader, from the end")


def source_splits_are_distinct_and_found_when_they_come(trial: SourceTrial) -> None:
    """Write to two source splits, the second one while the source is open."""
    with closing(trial.connect()) as source:
        before = {split.name for split in source.splits()}
        trial.write("b", b"same")
        b = found(trial, source, "b")
        trial.write("a", b"same")
        a = found(trial, source, "a")
        require(a.name != b.name, f"both are {a.name!r}")
        require(found(trial, source, "b") == b, "the first one has another name by now")
        for split in (a, b):
            require(split.name not in before, f"{split.name!r} was there before")
            with closing(source.open(split, source.start(split))) as reader:
                require(values(one(trial, reader)) == [b"same"], f"of {split}")


def the_lag_is_known_or_said_to_be_unknown(trial: SourceTrial) -> None:
    """Read the first of some records."""
    trial.write("a", b"one", b"two", b"three")
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        with closing(source.open(split, source.start(split))) as reader:
            first = one(trial, reader, bytes_max=1)
            lag = reader.behind()
            require(lag is None or lag > 0, f"two records are behind the first, not {lag}")
            list(all_of(trial, reader, first.end, 2))
            require(reader.behind() in (0, None), f"{reader.behind()} behind the last record")


def acknowledging_does_no_harm(trial: SourceTrial) -> None:
    """Acknowledge, also a position twice and an earlier one; what was read stays."""
    trial.write("a", b"one", b"two")
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        begin = source.start(split)
        with closing(source.open(split, begin)) as reader:
            first = one(trial, reader, bytes_max=1)
            for end in (begin, first.end, first.end):
                reader.acknowledge(end)
            require(values(one(trial, reader)) == [b"two"], "acknowledging moved the reader")
        with closing(source.open(split, begin)) as reader:
            require(values(one(trial, reader, bytes_max=1)) == [b"one"], "it moved the source")


def closing_twice_does_no_harm(trial: SourceTrial) -> None:
    """Close readers and source twice, in any order."""
    trial.write("a", b"one")
    source = trial.connect()
    split = found(trial, source, "a")
    read, unread = (source.open(split, source.start(split)) for _ in range(2))
    one(trial, read)
    for reader in (read, unread, read):
        reader.close()
    source.close()
    unread.close()
    source.close()


def a_lost_connection_passes_no_record_over(trial: SourceTrial) -> None:
    """Cut the connection between two records, mend it, go on with the same reader."""
    trial.write("a", b"one", b"two", b"three")
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        begin = source.start(split)
        with closing(source.open(split, begin)) as reader:
            came = [one(trial, reader, bytes_max=1)]
            trial.cut()
            try:
                for _ in range(3):  # what was fetched before may still come
                    records = reader.read(bytes_max=1)
                    came += [] if records is None else [records]
            except UnavailableError:
                pass
            trial.mend()
            trial.write("a", b"four")
            for _ in range(TRIES_MAX):
                if sum(records.count for records in came) == 4:
                    break
                try:
                    records = reader.read(bytes_max=1, wait_seconds=max(trial.wait_seconds, 0.5))
                except UnavailableError:
                    continue
                came += [] if records is None else [records]
        held = [value for records in came for value in values(records)]
        require(held == [b"one", b"two", b"three", b"four"], f"came: {held}")
        ends = [begin, *(records.end for records in came)]
        require([records.begin for records in came] == ends[:-1], f"there is a gap: {ends}")


def a_position_that_is_gone_is_an_error_with_both_ends(trial: SourceTrial) -> None:
    """Let the source forget the first records; begin at the first one."""
    trial.write("a", b"one", b"two", b"three")
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        begin = source.start(split)
        trial.forget("a", 2)
        with closing(source.open(split, begin)) as reader:
            try:
                records = reader.read(bytes_max=PLENTY, wait_seconds=trial.wait_seconds)
            except PositionGoneError as error:
                gone = error
            else:
                raise AssertionError(f"the gap was passed over: {records}")
        require(gone.first == begin, f"{begin} was wanted, not {gone.first}")
        with closing(source.open(split, gone.end)) as reader:
            require(values(one(trial, reader)) == [b"three"], f"not from {gone.end} on")


def what_is_made_anew_is_another_source_split(trial: SourceTrial) -> None:
    """Make a source split anew under its name, with more records than the old one had."""
    trial.write("a", b"old 1", b"old 2", b"old 3")
    with closing(trial.connect()) as source, closing(trial.connect()) as other:
        old = found(trial, source, "a")
        begin = source.start(old)
        with closing(source.open(old, begin)) as reader:
            first = one(trial, reader, bytes_max=1)
            rest = list(all_of(trial, reader, first.end, 2))
            trial.make_anew("a")
            trial.write("a", *(b"new %d" % number for number in range(9)))
            for view in (reader, source.open(old, rest[-1].end), other.open(old, first.end)):
                try:
                    records = view.read(bytes_max=PLENTY, wait_seconds=trial.wait_seconds)
                except InvalidError:
                    continue
                require(records is None, f"new records under the old name: {records}")
        new = found(trial, source, "a")
        require(new.name != old.name, f"both are {new.name!r}")
        with closing(source.open(new, source.start(new))) as reader:
            require(values(one(trial, reader, bytes_max=1)) == [b"new 0"], "not from its beginning")


def holes_are_passed(trial: SourceTrial) -> None:
    """Leave positions without records between two records, and behind the last one."""
    trial.write("a", b"one")
    trial.leave_hole("a")
    trial.write("a", b"two")
    trial.leave_hole("a")
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        begin = source.start(split)
        with closing(source.open(split, begin)) as reader:
            batches = list(all_of(trial, reader, begin, 2))
            came = [value for records in batches for value in values(records)]
            require(came == [b"one", b"two"], f"came: {came}")
            later = reader.read(bytes_max=PLENTY, wait_seconds=min(trial.wait_seconds, 0.5))
            require(later is None, f"a hole has records: {later}")
            require(reader.behind() in (0, None), f"{reader.behind()} behind the last record")
        end, resume = batches[-1].end, batches[-1].resume
        with closing(source.open(split, end, resume=resume)) as reader:
            require(reader.read(bytes_max=PLENTY) is None, "a hole has records")
            trial.write("a", b"three")
            records = one(trial, reader)
            require((records.begin, values(records)) == (end, [b"three"]), f"from {end}: {records}")


CHECKS: tuple[Check, ...] = (
    all_records_come_in_order_in_batches_of_any_size,
    a_position_gives_the_same_records_in_any_process,
    every_end_is_a_position_to_begin_at,
    what_is_written_later_comes_later,
    source_splits_are_distinct_and_found_when_they_come,
    the_lag_is_known_or_said_to_be_unknown,
    acknowledging_does_no_harm,
    closing_twice_does_no_harm,
    a_lost_connection_passes_no_record_over,
    a_position_that_is_gone_is_an_error_with_both_ends,
    what_is_made_anew_is_another_source_split,
    holes_are_passed,
)
