"""What users' messages may say, and what is said of one that is wrong."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.config.messages import (
    KINDS,
    MESSAGE_BYTES_MAX,
    MessageKind,
    Named,
    UserMessage,
    bulk_import_message,
    ingest_message,
    named_in,
    predicate_in,
    query_message,
    submission_message,
)
from lakebed.errors import InvalidError
from lakebed.model.addresses import NAMED_FILES_MAX
from lakebed.model.jobs import decode_message, decode_table_message
from lakebed.model.predicates.language import Compare

Decode = Callable[[bytes], UserMessage]
DECODERS: dict[str, Decode] = {
    "ingest": ingest_message,
    "submission": submission_message,
    "bulk import": bulk_import_message,
    "query": query_message,
}
INGEST = {"table": "trips", "files": ["s3://landing/a.parquet"]}
QUERY = {"table": "trips", "keys": ["a"]}


def body(message: object) -> bytes:
    return json.dumps(message).encode()


def refusal(decode: Decode, message: object) -> str:
    with pytest.raises(InvalidError) as caught:
        decode(body(message))
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_example_of_a_page_is_allowed(kind: MessageKind) -> None:
    decoded = DECODERS[kind.name](kind.example.encode())
    assert type(decoded) is kind.model
    assert decoded.table == "trips"


def test_all_that_is_wrong_is_said_at_once_with_what_to_write_instead() -> None:
    said = refusal(ingest_message, {"tabel": "trips", "files": [], "id": ""})
    for part in ("did you mean 'table'?", "table: ", "files: ", "id: not a job id", "for instance"):
        assert part in said
    assert "`lakebed explain message-ingest`" in said


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (INGEST | {"table": "Trips!"}, "beginning with a letter"),
        (INGEST | {"files": ["ftp://a/b"]}, "s3://BUCKET/KEY"),
        (INGEST | {"files": ["s3://landing"]}, "s3://BUCKET/KEY"),
        (INGEST | {"files": ["s3://landing/a\nb"]}, "not the name of a file"),
        (INGEST | {"files": ["s3://landing/" + "a" * 3000]}, "files.0"),
        (INGEST | {"files": "s3://landing/a"}, "files"),
        (INGEST | {"files": ["a"] * (NAMED_FILES_MAX + 1)}, "at most 10000"),
        (INGEST | {"spark_conf": {}}, "no such field"),
        (INGEST | {"id": "x" * 201}, "200 bytes"),
        (INGEST | {"id": 7}, "id: "),
        ([INGEST], "ingest message"),
        (None, "ingest message"),
    ],
)
def test_what_an_ingest_message_may_not_say(message: object, says: str) -> None:
    assert says in refusal(ingest_message, message)


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.jars": "s3://evil/code.jar"},
        {"spark.driver.extraJavaOptions": "-javaagent"},
        {"spark.executor.cores": "4; rm"},
        {"spark.executor.cores": 4},
        {"xspark.executor.cores": "4"},
        {"spark.executor.cores\n": "4"},
        {"spark.executor.cores": "4\n"},
    ],
)
def test_a_bulk_import_sets_no_more_of_spark_than_resources(conf: object) -> None:
    assert "spark_conf" in refusal(bulk_import_message, INGEST | {"spark_conf": conf})


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"platform": "eks"}, "platform"),
        ({"platform": "shared", "spot": True}, "`spot`"),
        ({"instance_types": ["m7g.xlarge"]}, "`instance_types`"),
        ({"platform": "cluster", "instance_types": ["m7g"]}, "instance_types.0"),
        ({"platform": "cluster", "instance_types": ["m7g.xlarge"] * 2}, "name each once"),
        (
            {"platform": "cluster", "instance_types": [f"m{n}g.large" for n in range(6)]},
            "at most 5",
        ),
        ({"platform": "cluster", "instance_types": []}, "at least 1"),
        ({"platform": "cluster", "units_max": 0}, "units_max"),
        ({"platform": "cluster", "units_max": "8"}, "units_max"),
    ],
)
def test_what_a_bulk_import_may_not_say_of_its_platform(more: dict[str, object], says: str) -> None:
    assert says in refusal(bulk_import_message, INGEST | more)


def test_a_bulk_import_runs_on_emr_serverless_unless_it_says_otherwise() -> None:
    assert bulk_import_message(json.dumps(INGEST).encode()).platform == "serverless"
    of_cluster = {"platform": "cluster", "instance_types": ["m7g.xlarge"], "spot": True}
    asked = bulk_import_message(json.dumps(INGEST | of_cluster).encode())
    assert (asked.platform, asked.instance_types, asked.spot) == ("cluster", ["m7g.xlarge"], True)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"table": "trips"}, "either `keys` or `ranges`"),
        (QUERY | {"ranges": [{}]}, "either `keys` or `ranges`"),
        (QUERY | {"keys": []}, "at least 1"),
        (QUERY | {"keys": [None]}, "null is never a key"),
        (QUERY | {"keys": [["a", 1.5]]}, "not a value of a key"),
        (QUERY | {"keys": [{"id": True}]}, "not a value of a key"),
        (QUERY | {"limit": 0}, "limit: "),
        (QUERY | {"limit": "5"}, "limit: "),
        (QUERY | {"columns": []}, "columns: "),
        (QUERY | {"where": "__import__('os').system('x')"}, "where: not a predicate"),
        (QUERY | {"where": {"test": "eval", "text": "1"}}, "where: not a predicate"),
        (QUERY | {"where": 1}, "where"),
        ({"table": "trips", "ranges": [{"id": {"min": 1, "mx": 2}}]}, "ranges.0.id.mx"),
        ({"table": "trips", "ranges": [{"id": {"min": 1.5}}]}, "not a value of a key"),
    ],
)
def test_what_a_query_message_may_not_say(message: object, says: str) -> None:
    assert says in refusal(query_message, message)


def test_a_test_on_values_may_be_text_or_json() -> None:
    as_json = {"test": "compare", "field": "fare", "is": ">=", "value": 4}
    for where in ("fare >= 4", as_json):
        found = query_message(body(QUERY | {"where": where})).where
        assert predicate_in(found) == Compare("fare", ">=", 4)


def test_a_message_that_is_too_large_is_not_even_parsed() -> None:
    large = b" " * MESSAGE_BYTES_MAX + body(INGEST)
    with pytest.raises(InvalidError, match="too large"):
        ingest_message(large)
    assert named_in(large) == Named()


@pytest.mark.parametrize("decode", [*DECODERS.values(), decode_message, decode_table_message])
def test_a_field_that_comes_twice_is_refused_at_any_depth(
    decode: Callable[[bytes], object],
) -> None:
    for text in (
        b'{"table": "trips", "id": "a", "table": "other"}',
        b'{"table": "trips", "where": {"a": 1, "table": 2, "table": 3}}',
        b'[{"table": 1, "table": 1}]',
    ):
        with pytest.raises(InvalidError, match=r"a field is given twice .field=table.: write each"):
            decode(text)


def test_a_message_that_names_two_tables_names_none() -> None:
    assert named_in(b'{"id": "j", "table": "trips", "table": "other"}') == Named()


def test_whom_to_tell_is_read_from_a_message_that_is_wrong() -> None:
    assert named_in(body({"id": "j", "table": "trips", "fils": 1})) == Named("j", "trips")
    assert named_in(body({"id": 7, "table": "No!"})) == Named()
    for broken in (b"{", b"\xff", b"[" * 100_000, b'"text"'):
        assert named_in(broken) == Named()


@settings(max_examples=60)
@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["id", "table", "files", "keys", "ranges", "where", "limit", "spark_conf"]
                )
                | st.text(),
                inner,
            )
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_whatever_comes_is_a_message_or_refused(raw: bytes) -> None:
    for decode in DECODERS.values():
        try:
            assert isinstance(decode(raw), UserMessage)
        except InvalidError as error:
            assert error.hint  # noqa: PT017 - either is right
    named_in(raw)


def test_the_library_does_without_pydantic(tmp_path: Path) -> None:
    program = (
        "import sys, lakebed\n"
        f"lakebed.connect({str(tmp_path / 'lake')!r}).close()\n"
        "import lakebed.cli.main\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == ("False", "")
