"""The aims that figures are kept with are those that the benchmarks hold them to now.

No benchmark is run: their text says which figure has which aim, where that is a constant.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.figure_pages.page import latest
from benchmarks.figures import Figure
from benchmarks.processes import ROOT

CHECKED_MIN = 50
"""Of about ninety figures with an aim: the others' are worked out by a run."""
Aims = frozenset[object]


class Held(NamedTuple):
    """A figure that a benchmark makes.

    letters: of its name that are written there.
    aims: which it may have; None: a run decides.
    """

    name: re.Pattern[str]
    letters: int
    aims: Aims | None


def values_of(node: ast.expr | None, known: dict[str, ast.expr]) -> Aims | None:
    """Return what an expression of constants may be; None: a run decides."""
    match node:
        case None:
            return frozenset([None])
        case ast.Constant(value=value):
            return frozenset([value])
        case ast.Name(id=name) if name in known:
            return values_of(known[name], known | {name: ast.Name("_")})
        case ast.IfExp(body=body, orelse=other):
            return all_of(values_of(body, known), values_of(other, known))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get")) if isinstance(
            table := known.get(name), ast.Dict
        ):
            return all_of(frozenset([None]), *(values_of(one, known) for one in table.values))
        case _:
            return None


def all_of(*some: Aims | None) -> Aims | None:
    known = [one for one in some if one is not None]
    return frozenset[object]().union(*known) if len(known) == len(some) else None


def held() -> Iterator[Held]:
    """Yield the figures of all benchmarks whose names are written there, at least in part."""
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        yield from held_in(path)


def held_in(path: Path) -> Iterator[Held]:
    """Yield the figures that one module makes."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    known = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        match node:
            case ast.Call(
                func=ast.Name(id="Figure"),
                args=[ast.Constant() | ast.JoinedStr() as name, *others],
            ):
                aim = others[2] if len(others) > 2 else None
                aim = next((one.value for one in node.keywords if one.arg == "aim"), aim)
                yield Held(*pattern_of(name), values_of(aim, known))


def pattern_of(name: ast.Constant | ast.JoinedStr) -> tuple[re.Pattern[str], int]:
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    texts = [str(part.value) if isinstance(part, ast.Constant) else None for part in parts]
    pattern = "".join(".+" if text is None else re.escape(text) for text in texts)
    return re.compile(pattern), sum(len(text) for text in texts if text is not None)


def aims_of(figure: Figure, made: list[Held]) -> Aims | None:
    """Return which aims a figure may have, by what says most of its name."""
    found = [one for one in made if one.name.fullmatch(figure.name)]
    most = max((one.letters for one in found), default=0)
    return all_of(None if not found else frozenset(), *(o.aims for o in found if o.letters == most))


def test_kept_aims_are_those_of_the_benchmarks() -> None:
    made = list(held())
    allowed = {figure: aims_of(figure, made) for figure in latest()}
    wrong = [f.name for f, aims in allowed.items() if aims is not None and f.aim not in aims]
    assert not wrong, "measure them again, or keep them with the aim that they have now"
    checked = [f for f, aims in allowed.items() if aims is not None and f.aim is not None]
    assert len(checked) >= CHECKED_MIN


@pytest.mark.parametrize(
    ("name", "aims"),
    [
        ("lookup.p50_over_latency_ms", {3, None}),
        ("lookup.sys.kib", {256, 448, None}),
        ("sql.point.extra_cpu_ms", {5.0}),
        ("export.ratio_to_read", {0.9}),
        ("sql.group_by.cpu_ms", {None}),
        ("doctor.planted_found", None),
    ],
)
def test_aims_are_found_in_the_text_of_benchmarks(name: str, aims: set[object] | None) -> None:
    assert aims_of(Figure(name, 0, ""), list(held())) == aims
