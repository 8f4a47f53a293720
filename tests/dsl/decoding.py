"""Payloads through a decoder, and what became of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakebed.config.decoders import columns_of, decoder_settings_of
from lakebed.decoding.decoder import Decoded
from lakebed.decoding.engines import NO_RESOURCES, Resources, decoder_of
from lakebed.decoding.raw_records import HEADERS, raw_records
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.schema import Schema


@dataclass(frozen=True)
class Outcome:
    """What became of payloads. fates: of each, its row as a dict, or the code of its verdict."""

    fates: list[Any]
    decoded: Decoded

    def detail(self, record: int) -> str:
        return self.decoded.details.get(record, "")


def records_of(payloads: Sequence[bytes | None], **columns: Sequence[object]) -> pa.RecordBatch:
    arrays = {"headers": HEADERS, "key": pa.binary(), "time": pa.timestamp("us", tz="UTC")}
    return raw_records(
        value=pa.array(payloads, pa.binary()),
        position=pa.array(range(len(payloads)), pa.int64()),
        **{name: pa.array(values, arrays[name]) for name, values in columns.items()},
    )


def decode(
    schema: Schema,
    payloads: Sequence[bytes | None],
    *,
    decoder: Mapping[str, Any] | None = None,
    connection: Mapping[str, Any] | None = None,
    version: int = 1,
    resources: Resources = NO_RESOURCES,
    **columns: Sequence[object],
) -> Outcome:
    made = decoder_of(
        decoder_settings_of(decoder or {"format": "json"}, at="feed.f.decoder"),
        columns_of(connection or {}, at="connection.c"),
        schema,
        version=version,
        resources=resources,
        at="connection.c",
    )
    return outcome_of(made.decode(records_of(payloads, **columns), source_split="split-7"))


def outcome_of(decoded: Decoded) -> Outcome:
    """Check what holds for all that is decoded, and return each record's fate."""
    decoded.rows.validate(full=True)
    indices = decoded.record.to_pylist()
    assert indices == sorted(set(indices))
    assert len(decoded.time) == len(indices) == decoded.rows.num_rows
    rows = dict(zip(indices, decoded.rows.to_pylist(), strict=True))
    fates: list[Any] = []
    for record, code in enumerate(decoded.verdicts.tolist()):
        assert (code == 0) == (record in rows), "a row or a verdict, never both and never neither"
        fates.append(rows[record] if code == 0 else Verdict(code).code)
    assert all(decoded.verdicts[record] for record in decoded.details)
    return Outcome(fates, decoded)
