"""Checks what a source without order promises: each record comes, under the name of its item, until
it is acknowledged or known."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from lakebed.source_kit.checks import Check, closing_twice_does_no_harm
from lakebed.source_kit.trial import (
    PLENTY,
    AnyReader,
    AnyRecords,
    SourceTrial,
    all_of,
    found,
    one,
    require,
    values,
)

VALUES = sorted(b"value %d" % number for number in range(1, 13))


def _write(trial: SourceTrial) -> None:
    """Write all values, two at a time: an item may have several records."""
    for first, second in zip(VALUES[::2], VALUES[1::2], strict=True):
        trial.write("a", first, second)


def _by_item(batches: Iterable[AnyRecords]) -> dict[bytes, list[bytes]]:
    """Return the values of each item, which must come once."""
    items: dict[bytes, list[bytes]] = {}
    for records in batches:
        require(records.items, "records without items")
        held, at = values(records), 0
        counts = records.item_counts or (1,) * len(records.items)
        for item, count in zip(records.items, counts, strict=True):
            require(item not in items, f"item {item.hex()} came twice from one reader")
            items[item] = held[at : at + count]
            at += count
    return items


def _rest(trial: SourceTrial, reader: AnyReader) -> AnyRecords | None:
    return reader.read(bytes_max=PLENTY, wait_seconds=min(trial.wait_seconds, 0.5))


def every_record_comes_once_to_a_reader_with_its_item(trial: SourceTrial) -> None:
    """Read with a bound below a record, and above all; positions count from what is given."""
    _write(trial)
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        with closing(source.open(split, 100)) as reader:
            first = one(trial, reader, bytes_max=1)
            batches = [first, *all_of(trial, reader, first.end, len(VALUES) - first.count)]
            require(batches[0].begin == 100, f"begins at {batches[0].begin}, and 100 was given")
            require(_rest(trial, reader) is None, "more came than was written")
        items = _by_item(batches)
        came = [value for held in items.values() for value in held]
        require(sorted(came) == VALUES, f"came: {came}")


def an_item_has_the_same_name_and_records_when_it_comes_again(trial: SourceTrial) -> None:
    """Read, acknowledge nothing, read again in another process."""
    _write(trial)
    seen: list[dict[bytes, list[bytes]]] = []
    for _ in range(2):
        with closing(trial.connect()) as source:
            split = found(trial, source, "a")
            with closing(source.open(split, 0)) as reader:
                seen.append(_by_item(all_of(trial, reader, 0, len(VALUES))))
        trial.let_unacknowledged_return()
    require(seen[0] == seen[1], f"first {seen[0]}, then {seen[1]}")


def what_is_written_later_has_other_items(trial: SourceTrial) -> None:
    """Read to the end, write the same value again, read on."""
    trial.write("a", b"same")
    with closing(trial.connect()) as source:
        split = found(trial, source, "a")
        with closing(source.open(split, 0)) as reader:
            first = one(trial, reader)
            reader.acknowledge(first.end)
            require(_rest(trial, reader) is None, "more came than was written")
            trial.write("a", b"same")
            second = one(trial, reader)
            require(second.begin == first.end, "positions do not go on")
            require(first.items != second.items, "two records of one item")
            reader.acknowledge(second.end)


ITEM_CHECKS: tuple[Check, ...] = (
    every_record_comes_once_to_a_reader_with_its_item,
    an_item_has_the_same_name_and_records_when_it_comes_again,
    what_is_written_later_has_other_items,
    closing_twice_does_no_harm,
)
