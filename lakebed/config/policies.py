"""Policies: what a connection does when records are bad, the source is faster than the table, or a
worker fails. The page `docs/reference/feed-settings.md` is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

DAY_SECONDS = 86_400

Rung = Literal["backpressure", "elastic", "spill", "throttle", "discard"]
Contract = Literal["freeze", "discard_field", "discard_record", "quarantine"]


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a policy, all of them."""

    on_record_error: Annotated[
        Literal["fail", "skip", "quarantine"],
        Meta(
            description="What becomes of a record that no row can be made of. `fail`: the"
            " connection fails. `skip`: it is counted only. `quarantine`: it becomes a row of the"
            " quarantine table."
        ),
    ] = "quarantine"
    errors_in_row_max: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000_000,
            description="The next bad record in a row fails the connection; what was before it is"
            " committed. More: a source that sends only bad records is noticed later.",
        ),
    ] = 100
    errors_fraction_max: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Of an hour's records, from 1,000 on: a greater share of bad ones fails the"
            " connection.",
        ),
    ] = 1.0
    on_worker_failure: Annotated[
        Literal["stop", "resume"],
        Meta(
            description="What follows when a worker is lost. `stop`: the connection fails."
            " `resume`: another worker goes on."
        ),
    ] = "resume"
    restarts_max: Annotated[
        int,
        Meta(
            ge=0,
            le=3_600,
            description="Times an hour that work is begun again after its source or code failed."
            " 0: the first failure is final.",
        ),
    ] = 10
    restart_seconds_min: Annotated[
        float, Meta(ge=0.1, le=3_600, description="Wait before the first of them; it doubles.")
    ] = 1.0
    restart_seconds_max: Annotated[
        float, Meta(ge=0.1, le=3_600, description="The longest wait before one of them.")
    ] = 60.0
    on_congestion: Annotated[
        tuple[Rung, ...],
        Meta(
            min_length=1,
            max_length=5,
            description="What is done, in order, while records come faster than they are committed;"
            " the next when one is full or the lag still rises.",
        ),
    ] = ("backpressure",)
    workers_min: Annotated[
        int, Meta(ge=1, le=1_000, description="Of `elastic`: workers that are always asked for.")
    ] = 1
    workers_max: Annotated[
        int, Meta(ge=1, le=1_000, description="Of `elastic`: more are never asked for.")
    ] = 10
    spill_bytes: Annotated[
        int,
        Meta(
            ge=1 << 20,
            le=1 << 42,
            description="Of `spill`: what may lie on the worker's disk. More: a longer congestion"
            " is bridged.",
        ),
    ] = 2 << 30
    throttle_floor: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Of `throttle`: the share of records that is kept at the least.",
        ),
    ] = 0.01
    discard_fraction: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Of `discard`: the share of an hour's records of a source split that may be"
            " left out at the most.",
        ),
    ] = 0.1
    lag_seconds_max: Annotated[
        int,
        Meta(
            ge=0,
            le=366 * DAY_SECONDS,
            description="Lag from which `on_lag` is done, once an episode. 0: never.",
        ),
    ] = 0
    on_lag: Annotated[
        Literal["alarm", "elastic", "fail"],
        Meta(
            description="What follows from a lag that is greater than `lag_seconds_max`. `alarm`:"
            " the event `feed_lagging`, on AWS with an alarm. `elastic`: the same, and more workers"
            " are asked for, up to `workers_max`. `fail`: the same, and the connection fails."
        ),
    ] = "alarm"
    gap: Annotated[
        Literal["fail", "record"],
        Meta(
            description="What follows when the source no longer has the next record. `fail`: the"
            " connection fails. `record`: it goes on behind the gap, which is recorded."
        ),
    ] = "record"
    schema_table: Annotated[
        Literal["freeze"],
        Meta(
            description="What follows when the table is not there. `freeze`: the connection fails."
        ),
    ] = "freeze"
    schema_column: Annotated[
        Contract,
        Meta(
            description="What becomes of a field without a column. `freeze`: the connection fails."
            " `discard_field`: the field is left out and counted. `discard_record`: its record is"
            " left out and counted. `quarantine`: the record is bad."
        ),
    ] = "discard_field"
    schema_type: Annotated[
        Contract,
        Meta(
            description="What becomes of a value that its column cannot hold. `freeze`,"
            " `discard_record`, `quarantine`: as of `schema_column`. `discard_field`: it is left"
            " out where the column may be null; where it may not, and of times, the record is bad."
        ),
    ] = "quarantine"
    late: Annotated[
        Literal["accept", "divert", "drop"],
        Meta(
            description="What becomes of a row whose window is sealed. `accept`: it is stored, and"
            " makes a new revision of the window. `divert`: it becomes a row of the quarantine"
            " table, with the verdict `late`. `drop`: it is left out, and counted as discarded."
        ),
    ] = "accept"
    nulls: Annotated[
        Literal["write", "ignore", "fail"],
        Meta(
            description="What becomes of a record without a value. `write`: a row of nulls."
            " `ignore`: it is left out, and counted as filtered. `fail`: the record is bad."
        ),
    ] = "write"
    dedupe: Annotated[
        Literal["none", "adjacent", "key", "window"],
        Meta(
            description="Which records are left out as known. `none`: none. `adjacent`: those equal"
            " to the one before in their source split. `key`: rows of a key that the table keeps"
            " the latest of. `window`: those whose `dedupe_field` was there within `once_seconds`."
        ),
    ] = "none"
    dedupe_field: Annotated[
        str, Meta(max_length=500, description="Of `dedupe` by window: the path of the field.")
    ] = ""
    once_seconds: Annotated[
        int,
        Meta(
            ge=60,
            le=366 * DAY_SECONDS,
            description="Of `dedupe` by window: how long a value is remembered, in log time.",
        ),
    ] = 4 * 3_600
    rotate_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 30,
            description="Bytes of records that are committed together at the most. More: fewer,"
            " larger files, and more memory.",
        ),
    ] = 64 << 20
    rotate_records: Annotated[
        int,
        Meta(ge=1, le=100_000_000, description="Records that are committed together at the most."),
    ] = 1_000_000
    rotate_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=3_600,
            description="How long a record waits for its commit at the most. More: fewer, larger"
            " files, and rows that are seen later.",
        ),
    ] = 10.0
    rotate_idle_seconds: Annotated[
        float,
        Meta(ge=0, le=3_600, description="How long it waits when the source has no more."),
    ] = 1.0
    rotate_at_minutes: Annotated[
        bool, Meta(description="Whether records are committed at each full minute, too.")
    ] = False
    rate_records_max: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000_000,
            description="Records a second that a worker reads at the most. 0: all.",
        ),
    ] = 0
    idle_seconds: Annotated[
        int,
        Meta(
            ge=1,
            le=366 * DAY_SECONDS,
            description="Log time for which a source split has nothing until it holds the watermark"
            " back no more.",
        ),
    ] = 60
    statistics_seconds: Annotated[
        float, Meta(ge=1, le=3_600, description="Time between two reports of figures.")
    ] = 5.0


DEFAULT_POLICY = "FaultTolerant"
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "Basic": {
            "on_record_error": "fail",
            "errors_in_row_max": 0,
            "on_worker_failure": "stop",
            "restarts_max": 0,
            "statistics_seconds": 60.0,
        },
        "Monitored": {
            "on_worker_failure": "stop",
            "restarts_max": 0,
            "lag_seconds_max": 60,
            "on_lag": "alarm",
        },
        DEFAULT_POLICY: {},
        "Spill": {"on_congestion": ("spill", "backpressure"), "spill_bytes": 2 << 30},
        "Discard": {"on_congestion": ("discard", "backpressure"), "discard_fraction": 0.1},
        "Throttle": {"on_congestion": ("throttle", "backpressure"), "throttle_floor": 0.01},
        "Elastic": {
            "on_congestion": ("elastic", "backpressure"),
            "workers_min": 1,
            "workers_max": 10,
            "lag_seconds_max": 60,
            "on_lag": "elastic",
        },
        "Strict": {
            "on_record_error": "fail",
            "gap": "fail",
            "schema_table": "freeze",
            "schema_column": "freeze",
            "schema_type": "freeze",
            "late": "divert",
            "nulls": "fail",
            "lag_seconds_max": 60,
            "on_lag": "alarm",
        },
    }
)
"""Parameters in which a policy differs from FaultTolerant, which has the defaults of `Policy`."""
