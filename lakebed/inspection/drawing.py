"""A table's status as text: its partition tree drawn, its jobs and garbage named."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from lakebed.inspection.status import ConnectionStatus, JobStatus, NodeStatus, TableStatus
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.statestore.table_state.kept_versions import Holder

LEAVES_DRAWN_MAX = 40
"""Most leaves that are drawn: of a larger tree the first and the last ones."""

JOBS_DRAWN_MAX = 10
HOLDERS_DRAWN_MAX = 20
KEY_LETTERS_MAX = 32
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


class _Line(msgspec.Struct, frozen=True):
    """A line of the tree.

    leaf: its index among the leaves; None: not a leaf.
    """

    text: str
    node: NodeStatus
    leaf: int | None
    prefix: str


def draw_status(status: TableStatus, *, leaves_max: int = LEAVES_DRAWN_MAX) -> str:
    """Return a table's status as lines of text. leaves_max: of those drawn, at least 2."""
    lines = [
        _first_line(status),
        "",
        *draw_tree(status.nodes, max(2, leaves_max)),
        "",
        _jobs_line(status),
        *(_job_line(job) for job in status.jobs[:JOBS_DRAWN_MAX]),
    ]
    if len(status.jobs) > JOBS_DRAWN_MAX:
        lines.append(f"  ... {len(status.jobs) - JOBS_DRAWN_MAX} more")
    lines.append(_garbage_line(status))
    lines.append(_log_line(status))
    lines += map(connection_line, status.connections)
    if status.pins:
        lines.append(f"pins      {_count(status.pins, 'long reader')}")
    lines += map(_holder_line, status.holders[:HOLDERS_DRAWN_MAX])
    if len(status.holders) > HOLDERS_DRAWN_MAX:
        lines.append(f"  ... {len(status.holders) - HOLDERS_DRAWN_MAX} more")
    if status.settings:
        lines.append("settings  " + ", ".join(f"{k}={v}" for k, v in status.settings.items()))
    return "\n".join(lines) + "\n"


def _first_line(status: TableStatus) -> str:
    rows, files = _rows(status.rows, exact=status.rows_exact), _count(status.files, "file")
    leaves = _count(status.leaves, "leaf", "leaves")
    offline = "" if status.online else ", offline"
    return f"{status.name}: {rows} in {files} ({size_text(status.bytes)}), {leaves}{offline}"


def draw_tree(nodes: tuple[NodeStatus, ...], leaves_max: int = LEAVES_DRAWN_MAX) -> list[str]:
    """Return a partition tree as lines of text."""
    if not nodes:
        return ["(no partitions)"]
    lines = _lines(nodes)
    leaves = sum(line.leaf is not None for line in lines)
    first = leaves if leaves <= leaves_max else (leaves_max + 1) // 2
    last = leaves if leaves <= leaves_max else leaves - leaves_max // 2
    ranks = _ranks(lines, leaves)
    width = max(len(line.text) for line in lines)
    drawn: list[str] = []
    hidden: list[NodeStatus] = []
    has_hole = False
    for line, (begin, end) in zip(lines, ranks, strict=True):
        if begin >= first and end <= last and leaves > leaves_max:
            hidden += [line.node] if line.leaf is not None else []
            if not has_hole:
                drawn.append(_HOLE)
                has_hole = True
            continue
        figures = "" if line.leaf is None else f"  {_leaf_figures(line.node)}"
        drawn.append(f"{line.text:<{width}}{figures}".rstrip())
    return [_hole(hidden) if text == _HOLE else text for text in drawn]


_HOLE = "\x00"


def _hole(hidden: list[NodeStatus]) -> str:
    rows, files = sum(n.rows for n in hidden), sum(n.files for n in hidden)
    exact = all(n.rows_exact for n in hidden)
    leaves = _count(len(hidden), "more leaf", "more leaves")
    return f"... {leaves}: {_rows(rows, exact=exact)}, {_count(files, 'file')}"


def _lines(nodes: tuple[NodeStatus, ...]) -> list[_Line]:
    by_id: Mapping[int, NodeStatus] = {node.id: node for node in nodes}
    lines: list[_Line] = []
    leaf = 0
    stack = [(nodes[0], "", "")]  # a node, what stands before it, what before its children
    while stack:
        node, before, below = stack.pop()
        is_leaf = node.left is None or node.right is None
        label = f"all of {node.field}" if not before else _range_text(node)
        lines.append(_Line(before + label, node, leaf if is_leaf else None, below))
        leaf += is_leaf
        if node.left is not None and node.right is not None:
            stack.append((by_id[node.right], f"{below}└─ ", f"{below}   "))
            stack.append((by_id[node.left], f"{below}├─ ", f"{below}│  "))
    return lines


def _ranks(lines: list[_Line], leaves: int) -> list[tuple[int, int]]:
    """Return for each line the indices of the leaves at or under it, half open."""
    ranks: dict[int, tuple[int, int]] = {}
    end = leaves
    for line in reversed(lines):
        node = line.node
        if line.leaf is not None:
            ranks[node.id] = (line.leaf, end)
            end = line.leaf
        else:
            assert node.left is not None, "an inner node has children"
            assert node.right is not None, "an inner node has children"
            ranks[node.id] = (ranks[node.left][0], ranks[node.right][1])
    return [ranks[line.node.id] for line in lines]


def _range_text(node: NodeStatus) -> str:
    if node.min is None:
        return f"{node.field} below {_key(node.max)}" if node.max is not None else "everything"
    if node.max is None:
        return f"{node.field} from {_key(node.min)}"
    return f"{node.field} {_key(node.min)} to {_key(node.max)}"


def _key(text: str | None) -> str:
    shown = (
        (text or "").encode("unicode_escape").decode() if not (text or " ").isprintable() else text
    )
    shown = shown or "''"
    return shown if len(shown) <= KEY_LETTERS_MAX else shown[: KEY_LETTERS_MAX - 3] + "..."


def _leaf_figures(node: NodeStatus) -> str:
    rows = _rows(node.rows, exact=node.rows_exact)
    parts = [f"{rows:>20}", f"{_count(node.files, 'file'):>9}", f"{size_text(node.bytes):>8}"]
    if node.claimed:
        parts.append(f"{node.claimed} claimed")
    if node.unsplittable:
        parts.append("no split point")
    return "  ".join(parts)


def _jobs_line(status: TableStatus) -> str:
    waiting = "" if status.queued is None else f", {_count(status.queued, 'message')} queued"
    dead = f", {_count(status.dead_letters, 'dead letter')}" if status.dead_letters else ""
    of_queues = ", ".join(f"{name} {letters:,}" for name, letters in status.dead_letters_of.items())
    where = f" ({of_queues}): see `lakebed dead-letters list`" if of_queues else ""
    return f"jobs      {len(status.jobs) or 'none'} running{waiting}{dead}{where}"


def _job_line(job: JobStatus) -> str:
    report = "not heard of"
    if job.report is not None:
        report = f"{job.report} {_age(job.report_age_seconds or 0.0)} ago"
    reason = f": {job.reason}" if job.reason else ""
    return (
        f"  {job.id[:8]}  {_count(job.files, 'file')} of leaf {job.partition},"
        f" claimed {_age(job.age_seconds)} ago, {report}{reason}"
    )


def connection_line(connection: ConnectionStatus) -> str:
    """Return what is known of a feed, in a line."""
    became = [f"{_count(connection.read, 'record')} read", f"{connection.stored:,} stored"]
    if connection.quarantined:
        became.append(f"{connection.quarantined:,} quarantined")
    if connection.gaps:
        became.append(_count(connection.gaps, "gap"))
    if connection.errors_in_row:
        became.append(_count(connection.errors_in_row, "error in a row", "errors in a row"))
    if connection.watermark is not None:
        at = datetime.fromtimestamp(connection.watermark // MICROS_PER_SECOND, UTC)
        became.append(f"watermark {at:%Y-%m-%d %H:%M:%S}")
    if connection.windows_open:
        became.append(_count(connection.windows_open, "open window"))
    splits = _count(connection.source_splits, "source split")
    return f"feed      {connection.id}, version {connection.version}: {splits}, {', '.join(became)}"


def _garbage_line(status: TableStatus) -> str:
    if not status.garbage_files:
        return "garbage   none"
    files = _count(status.garbage_files, "file")
    return f"garbage   {files} ({size_text(status.garbage_bytes)}), {status.garbage_due} due"


def _holder_line(holder: Holder) -> str:
    costs = f"{size_text(holder.bytes)} of garbage stay for it alone"
    behind = " all behind" if holder.kind == "follower" else ""
    return f"kept      {holder.kind} {holder.name}:{behind} entry {holder.number:,}, {costs}"


def _log_line(status: TableStatus) -> str:
    at = ", ".join(f"{number:,}" for number in status.snapshots[:3])
    snapshots = f"snapshots at {at}" if at else "no snapshot"
    return f"log       entry {status.number:,}, floor {status.floor:,}, {snapshots}"


def _rows(rows: int, *, exact: bool) -> str:
    return f"{'' if exact else 'about '}{_count(rows, 'row')}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size_text(size: int) -> str:
    """Return a number of bytes, short."""
    value, unit = float(size), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def _age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
