"""Settings of one table. The page `docs/reference/settings.md` is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from lakebed.errors import InvalidError, did_you_mean

NUMBER_MAX = 1 << 53
"""Readers of JSON take larger numbers as something else."""

OUR_STRATEGIES = ("basic", "size_ratio")
"""Our strategies of compaction. Others are those of users' packages."""

Settings = TypeVar("Settings", bound=msgspec.Struct)


class TableSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one table. Names put the noun first, then the unit, then min or max."""

    compaction_strategy: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="How files of a leaf are grouped. `basic`: oldest first; `size_ratio`: of"
            " like sizes together; another name: as the strategy says that a package has as an"
            " entry point of `lakebed.compaction_strategies`.",
        ),
    ] = "size_ratio"
    job_files_max: Annotated[
        int,
        Meta(ge=2, le=500, description="Files one compaction job merges. More: fewer rewrites."),
    ] = 12
    size_ratio: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="The other files of a job hold at least this times the rows of its largest."
            " Must be below `job_files_max`, else no group of files is large enough.",
        ),
    ] = 3
    leaf_jobs_max: Annotated[
        int, Meta(ge=1, le=1000, description="Compaction jobs at one time in one leaf.")
    ] = 2
    table_jobs_max: Annotated[
        int, Meta(ge=1, le=100_000, description="Compaction jobs at one time in the table.")
    ] = 10_000
    leaf_rows_max: Annotated[
        int, Meta(ge=2, description="A leaf with more rows is split. More: fewer, larger files.")
    ] = 20_000_000
    leaf_bytes_max: Annotated[
        int,
        Meta(
            ge=1 << 20,
            le=1 << 42,
            description="A leaf whose files hold more is split. More: fewer, larger files, and"
            " merges that take longer.",
        ),
    ] = 8 << 30
    leaf_files_max: Annotated[
        int,
        Meta(
            ge=4, le=10_000, description="Above it ingest is refused until compaction catches up."
        ),
    ] = 400
    shared_file_rows_max: Annotated[
        int,
        Meta(ge=0, description="Leaves that get fewer rows of an ingest job share one file."),
    ] = 5_000
    leaves_min: Annotated[
        int,
        Meta(
            ge=1,
            le=65_536,
            description="A bulk import splits the leaves that it fills until the table has so many,"
            " where its rows suffice for files of their own. More: more tasks at a time, smaller"
            " files.",
        ),
    ] = 1
    garbage_seconds_min: Annotated[
        int,
        Meta(ge=0, description="Time an unreferenced file is kept, so that readers can finish."),
    ] = 3_600
    pending_seconds_max: Annotated[
        int,
        Meta(ge=0, description="Time from a job's first file to its commit, before it is fenced."),
    ] = 48 * 3_600
    job_id_seconds_min: Annotated[
        int,
        Meta(ge=0, description="Time a job's id is remembered, so that sending it again is safe."),
    ] = 30 * 86_400
    value_statistics: Annotated[
        bool,
        Meta(
            description="Files written from now on record the bounds of values, so that predicates"
            " on them pass over row groups and pages. Costs time when writing, most for numbers."
        ),
    ] = False
    scan_bytes_max: Annotated[
        int,
        Meta(
            ge=0,
            description="Bytes of files that one query may read; a query may ask for less. 0: no"
            " cap.",
        ),
    ] = 0
    budget_dollars: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000_000,
            description="Dollars that the work on the table may cost in a calendar month, by the"
            " prices that come with Lakebed; above it an alarm goes off. 0: any number.",
        ),
    ] = 0
    budget_stops: Annotated[
        bool,
        Meta(
            description="Whether queries, exports and imports are refused once `budget_dollars` are"
            " spent, until the month is over."
        ),
    ] = False
    follower_seconds_max: Annotated[
        int,
        Meta(
            ge=60,
            le=10 * 365 * 86_400,
            description="Time for which changes are kept for a follower that reads none.",
        ),
    ] = 7 * 86_400
    redispatch_seconds: Annotated[
        int, Meta(ge=0, description="Time after which a job that no worker started is sent again.")
    ] = 900
    batch_seconds_max: Annotated[
        int,
        Meta(
            ge=0,
            le=7 * 86_400,
            description="Time after which a submitted file becomes part of a job, alone if no more"
            " came. More: fewer, larger jobs.",
        ),
    ] = 300
    batch_files_min: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="Submitted files become a job sooner when there are so many, and"
            " `batch_bytes_min` of them.",
        ),
    ] = 1
    batch_files_max: Annotated[
        int, Meta(ge=1, le=1_000, description="Submitted files that one job takes in.")
    ] = 500
    batch_bytes_min: Annotated[
        int,
        Meta(
            ge=0,
            description="Submitted files become a job sooner when they have so many bytes, and are"
            " `batch_files_min`.",
        ),
    ] = 1 << 30
    batch_bytes_max: Annotated[
        int,
        Meta(
            ge=1,
            description="Bytes of submitted files that one job takes in. A larger file has a job of"
            " its own.",
        ),
    ] = 5 << 30
    batch_target: Annotated[
        Literal["ingest", "bulk-import", "auto"],
        Meta(
            description="What takes submitted files in. `auto`: a bulk import for more than 20 GiB,"
            " or more than 5 million rows a leaf as far as their size tells; else an ingest. A lake"
            " in a directory ingests."
        ),
    ] = "auto"


def table_settings(
    changes: Mapping[str, object], base: TableSettings | None = None
) -> TableSettings:
    """Return settings with some changed.

    Raises:
        InvalidError: an unknown name (with the nearest known one), or a value out of bounds.
    """
    return changed(base or TableSettings(), changes)


def check_compaction(changes: Mapping[str, object], settings: TableSettings) -> None:
    """Refuse changes after which compaction would find no group. settings: with the changes.

    Tables that have such settings already keep them until one of the three is changed.

    Raises:
        InvalidError: `size_ratio` is not below `job_files_max`.
    """
    named = {"compaction_strategy", "job_files_max", "size_ratio"} & set(changes)
    is_met = settings.size_ratio < settings.job_files_max
    if named and settings.compaction_strategy == "size_ratio" and not is_met:
        less = settings.job_files_max - 1
        raise InvalidError(
            "with these settings compaction would merge nothing",
            job_files_max=settings.job_files_max,
            size_ratio=settings.size_ratio,
            hint=f"set size_ratio={less} or less, a larger job_files_max,"
            " or compaction_strategy=basic",
        )


def check_batching(changes: Mapping[str, object], settings: TableSettings) -> None:
    """Refuse changes after which no batch would ever have enough. settings: with the changes.

    Raises:
        InvalidError: a minimum is above its maximum.
    """
    for what in ("files", "bytes"):
        least, most = f"batch_{what}_min", f"batch_{what}_max"
        values = getattr(settings, least), getattr(settings, most)
        if {least, most} & set(changes) and values[0] > values[1]:
            raise InvalidError(
                "a batch would need more than it may have",
                **{least: values[0], most: values[1]},
                hint=f"set {least}={values[1]} or less, or a larger {most}",
            )


def changed(
    settings: Settings,
    changes: Mapping[str, object],
    *,
    texts: bool = False,
    page: str = "settings",
) -> Settings:
    """Return settings with some changed.

    texts: `"7"` is taken for 7.
    page: describes the bounds.

    Raises:
        InvalidError: an unknown name (with the nearest known one), or a value out of bounds.
    """
    wrong: dict[str, InvalidError] = {}
    after = settings
    for name, value in changes.items():
        try:
            after = _with_one(after, str(name), value, texts=texts, page=page)
        except InvalidError as error:
            wrong[str(name)] = error
    if len(wrong) > 1:
        hint = "; ".join(map(str, wrong.values()))
        raise InvalidError("several settings are wrong", settings=", ".join(wrong), hint=hint)
    for problem in wrong.values():
        raise problem
    return after


def _with_one(settings: Settings, name: str, value: object, *, texts: bool, page: str) -> Settings:
    known = settings.__struct_fields__
    if name not in known:
        hint = did_you_mean(name, known, what="setting")
        raise InvalidError("no such setting", setting=name, hint=hint)
    if type(value) is int and abs(value) > NUMBER_MAX:
        hint = f"give at most {NUMBER_MAX}"
        raise InvalidError("a setting is too large", setting=name, value=value, hint=hint)
    values = msgspec.to_builtins(settings) | {name: value}
    try:
        return msgspec.convert(values, type(settings), strict=not texts)
    except msgspec.ValidationError:
        raise InvalidError(
            "not a value for the setting",
            setting=name,
            value=ascii(value)[:80],
            hint=f"give {_wanted(type(settings), name)}; `lakebed explain {page}` says more",
        ) from None


def named_in(setting: str) -> list[str]:
    """Return what a setting of an instance names, with commas between. In `lakebed.toml` it is a
    list of a table: `[people]` with `reader = ["arn:..."]` is the setting `people_reader`."""
    return [name for name in setting.split(",") if name]


def check_listed(name: str, value: str, *, items_max: int) -> None:
    """Check that a setting names few things, each once.

    Raises:
        InvalidError: it names too many, or one of them twice.
    """
    items = named_in(value)
    if len(items) > items_max or len(set(items)) < len(items):
        hint = f"name at most {items_max}, each once"
        raise InvalidError("not a list that can be deployed", **{name: value[:200]}, hint=hint)


def describe(settings: type[msgspec.Struct]) -> list[tuple[str, str, str, str]]:
    """Return name, allowed values, default and description of each setting."""
    rows = []
    hints = get_type_hints(settings, include_extras=True)
    for field in msgspec.structs.fields(settings):
        inner, meta = get_args(hints[field.name])
        default = str(field.default).lower() if inner is bool else str(field.default) or "none"
        rows.append((field.name, _allowed(inner, meta), default, str(meta.description)))
    return rows


def allowed_of(annotation: Any) -> str:  # noqa: ANN401 - the same
    """Return what a field takes, in words, by the annotation that it has."""
    inner, meta = annotation, Meta()
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        meta = next((one for one in metas if isinstance(one, Meta)), meta)
    origin = get_origin(inner)
    if origin in {UnionType, Union}:
        parts = [one for one in get_args(inner) if one is not NoneType]
        return " or ".join(dict.fromkeys(allowed_of(Annotated[one, meta]) for one in parts))
    if origin is tuple:
        return f"a list of {allowed_of(get_args(inner)[0])}".replace("of a text", "of texts")
    if origin is dict or not (inner in {bool, str, int, float} or origin is Literal):
        return "a section"
    if inner in {int, float} and (meta.ge, meta.gt) == (None, None):
        return "a number"
    return _allowed(inner, meta)


def _wanted(settings: type[msgspec.Struct], name: str) -> str:
    """Return what a setting takes, for an error. Of a text that is the first sentence of its
    description: a pattern is not for people."""
    inner, meta = get_args(get_type_hints(settings, include_extras=True)[name])
    if inner is str:
        first = str(meta.description).partition(". ")[0].rstrip(".")
        return first[0].lower() + first[1:]
    allowed = _allowed(inner, meta)
    return f"a number, {allowed}" if inner is int else f"one of {allowed}"


def _allowed(inner: Any, meta: Meta) -> str:  # noqa: ANN401 - a typing form has no type of its own
    if inner is bool:
        return "`true`, `false`"
    if get_origin(inner) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(inner))
    if inner is str:
        return "a text"
    if meta.gt is not None:
        return f"above {meta.gt}, up to {meta.le}"
    return f"{meta.ge} to {meta.le}" if meta.le is not None else f"at least {meta.ge}"
