"""Most functions of the product are short, and so are most of its modules: the longest that are
allowed are held by `rules.py`, and what is usual here."""

import ast
from collections.abc import Iterable
from statistics import median

from tests.tidy.source import Source, product

FUNCTION_LINES = 21
"""Nine functions of ten have at most as many lines."""
MODULE_LINES = 130
"""Half of the modules have at most as many lines."""


def lines_of_functions(sources: Iterable[Source]) -> list[int]:
    """Return how many lines each function has, in ascending order."""
    return sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def ninth_tenth(lines: list[int]) -> int:
    """Return the smallest length that nine of ten do not exceed; `lines` ascend."""
    return lines[-(-9 * len(lines) // 10) - 1]


def lines_of_modules(sources: Iterable[Source]) -> float:
    """Return the median of the modules' lines, without those that only make a folder a package."""
    return median(len(s.lines) for s in sources if not s.path.endswith("/__init__.py"))


def test_nine_functions_of_ten_are_short() -> None:
    lines = lines_of_functions(product())
    assert ninth_tenth(lines) <= FUNCTION_LINES, "take steps out of long functions and name them"


def test_half_of_the_modules_are_short() -> None:
    assert lines_of_modules(product()) <= MODULE_LINES, "split long modules by what they decide"


def test_long_functions_and_modules_are_noticed() -> None:
    short, long = "def a():\n    pass\n", "def b():\n" + "    step()\n" * 30
    assert ninth_tenth(lines_of_functions([Source("lakebed/x.py", short * 9 + long)])) == 2
    assert ninth_tenth(lines_of_functions([Source("lakebed/x.py", short * 8 + long)])) == 31
    modules = [Source(f"lakebed/{name}.py", "x = 1\n" * 200) for name in ("x", "y")]
    empty = [Source(f"lakebed/{name}/__init__.py", "") for name in "abc"]
    assert lines_of_modules([*empty, *modules]) == 200
