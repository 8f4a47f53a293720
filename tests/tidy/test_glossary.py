"""The words that the glossary replaces are in no name: its last column is held against identifiers.

A word that we keep for something else is listed with what that is. `docs/style.md` says where such
a word may not stand alone.
"""

import re
from collections.abc import Iterator

import pytest

from tests.tidy.source import ROOT, Source, product
from tests.tidy.test_style import identifiers

ROW = re.compile(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
FOREIGN = {"ShardId", "ShardIterator", "destination_security_group_id", "get_shard_iterator"}
"""Names that interfaces of AWS have."""
KEPT = {
    "assign": "librdkafka's: which partitions are read",
    "block": "of bytes, or of a sorted run",
    "cache": "of states on a machine, and of bytes of files",
    "cluster": "who runs a bulk import, and where tasks start",
    "compaction": "the room: merging files of a leaf and replacing them",
    "condition": "of a request to DynamoDB, and what IAM asks",
    "cursor": "SQLite's, and where a merge stands in a sorted run",
    "dataset": "Arrow's",
    "driver": "Spark's, and of container logs",
    "dropped": "a table that is gone",
    "epoch": "1970; a leader's, of Kafka",
    "event": "of logs, and of jobs",
    "expiry": "DynamoDB's, of items",
    "expression": "Arrow's, and DynamoDB's",
    "flag": "of the command line, and of processors",
    "floor": "the write floor",
    "flush": "of files that Python writes",
    "get": "of dictionaries and of S3",
    "group": "rows that are folded into one",
    "hook": "msgspec's and json's",
    "interface": "NumPy's, and a kind of endpoint of AWS",
    "jump": "of the local cloud's time",
    "leaf": "a partition that was not split",
    "lock": "of threads, files and databases",
    "module": "Python's",
    "offset": "of bytes and of elements",
    "partition": "of a table; DynamoDB's key; AWS's regions",
    "process": "of the operating system",
    "region": "AWS's",
    "replay": "entries of a log applied again",
    "run": "an attempt at a job, and the verb",
    "save": "the emulator's own name",
    "seek": "of files that Python reads",
    "segment": "of a column: an Arrow array among those that it is made of; what was pushed",
    "service": "of AWS, and what the bootstrap hands out",
    "skipped": "files of a folder that are not read",
    "stage": "where rows are processed: ingest, compaction, query",
    "status": "what a lake, a table or an answer of HTTP looks like now",
    "stream": "of bytes, and Arrow's",
    "task": "a process that takes jobs",
    "timestamp": "the type of a field",
    "tombstone": "the last entry of a dropped table's log",
    "ttl": "botocore's own name",
    "udf": "Spark's",
    "upsert": "what users call an ingest whose rows replace older ones: `Table.upsert`",
    "worker": "a process of the local cloud that runs a function; a loop over jobs",
}
"""Words of the last column that name something else, and what."""


def replaced_words() -> set[str]:
    """Return the words, and pairs of words, of the glossary's last column."""
    page = (ROOT / "docs/glossary.md").read_text("utf-8")
    cells = [row[1].partition(":")[0] for row in ROW.finditer(page) if row[1] != "Not called"]
    words = {word.partition("(")[0].strip() for cell in cells for word in cell.split(",")}
    return {word.lower() for word in words if word}


def parts(name: str) -> list[str]:
    """Return the words of an identifier, in lower case."""
    return [part.lower() for part in PART.findall(name)]


def named_otherwise(source: Source, words: set[str]) -> Iterator[str]:
    """Yield where an identifier has one of these words, also as a plural."""
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted(words)))})s?\b")
    for line, name in identifiers(source):
        if name not in FOREIGN and (found := pattern.search(" ".join(parts(name)))):
            yield f"{source.path}:{line} {name}: not {found[1]}, see docs/glossary.md"


def test_no_name_has_a_word_that_the_glossary_replaces() -> None:
    words = replaced_words()
    assert {"shard", "checkpoint", "midpoint", "merge job"} <= words
    refused = words - set(KEPT)
    assert [found for source in product() for found in named_otherwise(source, refused)] == []


def test_words_that_are_kept_are_replaced_elsewhere_and_still_used() -> None:
    used = {part for source in product() for _, name in identifiers(source) for part in parts(name)}
    assert set(KEPT) <= replaced_words()
    assert {word for word in KEPT if not {word, f"{word}s"} & used} == set()


@pytest.mark.parametrize("name", ["shard", "ShardIds", "_midpoints", "merge_job", "MergeJob"])
def test_a_replaced_word_is_found(name: str) -> None:
    refused = replaced_words() - set(KEPT)
    assert list(named_otherwise(Source("lakebed/x.py", f"{name} = 1\n"), refused))


@pytest.mark.parametrize("name", ["partition", "midpointed", "merges"])
def test_other_words_are_free(name: str) -> None:
    refused = replaced_words() - set(KEPT)
    assert not list(named_otherwise(Source("lakebed/x.py", f"{name} = 1\n"), refused))
