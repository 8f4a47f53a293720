"""The page of the Python API, made from the docstrings of what `import lakebed` gives."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Container, Iterable, Iterator
from types import FunctionType

import lakebed
from lakebed import aio
from lakebed.deletes.requests import Deleted
from lakebed.exports.export_table import Exported
from lakebed.exports.restore_table import Restored
from lakebed.face.followed_table import Follower, RowChange
from lakebed.feed import FeedDefinitions
from lakebed.feeds.apply_definitions import PlannedChange
from lakebed.feeds.lifecycle import FeedStanding
from lakebed.feeds.operating.flush_feed import FeedFlushed
from lakebed.ingest.sources import IngestOptions
from lakebed.lake import Lake
from lakebed.landing.find_record import RecordInTable
from lakebed.landing.push.waiting_segments import WaitingSegments
from lakebed.query.datasets import TableDataset
from lakebed.query.explanation import QueryExplanation
from lakebed.query.table_files import TableFile
from lakebed.sql.explain_sql import ScanExplanation, SqlExplanation
from lakebed.table import Table
from lakebed.tables.change_table import TableHistory
from lakebed.tables.versions import TaggedVersion
from lakebed.tasks.user_jobs import Ingested

LINE_COLUMNS = 96
FACES = (Lake, Table, RowChange, Follower, FeedDefinitions)
"""Classes whose members have an entry each; of other classes the page has their docstring."""
ANSWERS = (
    Deleted,
    Exported,
    FeedFlushed,
    FeedStanding,
    Ingested,
    PlannedChange,
    QueryExplanation,
    RecordInTable,
    Restored,
    ScanExplanation,
    SqlExplanation,
    TableDataset,
    TableFile,
    TableHistory,
    TaggedVersion,
    WaitingSegments,
)
"""What methods return, and `import lakebed` does not name."""
OPTIONS = (IngestOptions,)
"""Of methods that take them by name."""


def python_page(made: str) -> str:
    """Return it. made: the sentence that says from what."""
    lines = ["# The Python API", "", made]
    lines += ["`lakebed explain python` prints it, `help(lakebed.Table)` a part of it.", ""]
    others = [getattr(lakebed, name) for name in lakebed.__all__]
    functions = [other for other in others if isinstance(other, FunctionType)]
    classes = [other for other in others if inspect.isclass(other) and other not in FACES]
    for function in sorted(functions, key=lambda f: (f.__name__ != "connect", f.__name__)):
        lines += entry(f"lakebed.{function.__name__}", function)
    for face in FACES:
        lines += [f"## {face.__name__}", "", *prose(face), ""]
        for name, member in members(face):
            lines += entry(name, member, level="###")
    for options in OPTIONS:
        fields = [f"{name}: {type_}" for name, type_ in options_of(options).items()]
        lines += [f"## {options.__name__}", "", "```py", *fields, "```", "", *prose(options), ""]
    lines += ["## lakebed.aio", "", *async_prose(), ""]
    for other in [*classes, *ANSWERS, aio.Batches, aio.AsyncItems]:
        lines += [f"## {other.__name__}", "", *prose(other), ""]
    return "\n".join(lines).rstrip() + "\n"


def async_prose() -> list[str]:
    """Return what is said of the async twin: the example of its docstring as code."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(aio.__doc__ or "").split("\n\n"):
        is_code = paragraph.startswith(("import ", "async "))
        lines += ["```py", paragraph, "```", ""] if is_code else [paragraph, ""]
    return lines


def options_of(options: type) -> dict[str, str]:
    """Return the type of each option, as it is written."""
    written = inspect.get_annotations(options)
    return {name: getattr(type_, "__forward_arg__", type_) for name, type_ in written.items()}


def members(face: type) -> Iterator[tuple[str, FunctionType | property]]:
    """Yield public members in the order of the source, then those of what the class is made of."""
    for owner in face.__mro__[:-1]:
        for name, member in vars(owner).items():
            if not name.startswith("_") and isinstance(member, FunctionType | property):
                yield name, member


def entry(name: str, member: FunctionType | property, *, level: str = "##") -> list[str]:
    """Return the lines of a function, a method or a property."""
    if isinstance(member, property):
        type_ = member.fget.__annotations__["return"] if member.fget else ""
        return [f"{level} {name}", "", "```py", f"{name}: {type_}", "```", "", *prose(member), ""]
    return [f"{level} {name}", "", "```py", signature(name, member), "```", "", *prose(member), ""]


def signature(name: str, function: FunctionType) -> str:
    """Return how it is called, an argument a line where that is long."""
    whole = inspect.signature(function)
    parts: list[str] = []
    for parameter in [p for n, p in whole.parameters.items() if n != "self"]:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(argument(parameter))
    back = f" -> {whole.return_annotation}"
    line = f"{name}({', '.join(parts)}){back}"
    if len(line) <= LINE_COLUMNS:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){back}"])


def argument(parameter: inspect.Parameter) -> str:
    """Return an argument as it is written."""
    stars = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}: {parameter.annotation}"
    if parameter.default is parameter.empty:
        return text
    shown = "..." if callable(parameter.default) else repr(parameter.default)
    return f"{text} = {shown}"


def fields_listed(lines: Iterable[str], fields: Container[str]) -> list[str]:
    """Return lines in which the explanation of each field, or argument, is an item of a list."""
    listed = []
    for line in lines:
        names = line.partition(": ")[0].split(", ")
        if ": " in line and all(name in fields for name in names):
            listed.append(
                f"- {', '.join(f'`{name}`' for name in names)}{line[len(', '.join(names)) :]}"
            )
        else:
            listed.append(line.replace("    ", "  ", 1) if line.startswith("    ") else line)
    return listed


def prose(thing: object) -> list[str]:
    """Return a docstring as lines of the page: what it raises as a list."""
    text = inspect.cleandoc(thing.__doc__ or "")
    before, raises, after = text.partition("Raises:\n")
    lines = before.rstrip().splitlines()
    if inspect.isclass(thing):
        lines = fields_listed(lines, inspect.get_annotations(thing))
    elif isinstance(thing, FunctionType):
        lines = fields_listed(lines, inspect.signature(thing).parameters)
    if raises:
        lines += ["", f"Raises: {' '.join(textwrap.dedent(after).split())}"]
    return lines
