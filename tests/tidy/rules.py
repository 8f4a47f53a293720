"""The house rules that ruff, mypy and import-linter do not know. One function per rule."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from os.path import normpath
from pathlib import Path

from tests.tidy.source import ROOT, Finding, Source

Rule = Callable[[Source], Iterator[Finding]]

CLOCK = "take a Clock from lakebed.ports as an argument"
CHANCE = "take a seeded random.Random as an argument"
IDS = "take a maker of ids as an argument"
BANNED = {
    r"time\.(time|monotonic|perf_counter|process_time)(_ns)?": CLOCK,
    r"time\.(sleep|localtime|gmtime|ctime)": CLOCK,
    r"datetime\.(datetime|date)\.(now|utcnow|today)": CLOCK,
    r"uuid\.uuid[147]": IDS,
    r"random\.(?!Random$)\w+": CHANCE,
    r"os\.urandom": CHANCE,
    r"secrets\.\w+": CHANCE,
}
"""What the core must not reach for, and what it does instead."""

CORE = ("lakebed", "localcloud")
"""Tested in virtual time, and held to what the library may do with rows and paths."""

PROGRAMS = ("localcloud/programs",)
"""Run as processes of their own, which know nothing of the core."""

ENTRIES = {"lakebed.cli.main", "lakebed.kernels.toolchain.filling"}
"""Modules of the library that are run: the command, and what fills images with kernels."""

VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "info", "data"}
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
COLUMNS_MAX = 100
NARROWS = re.compile(r"[\w.]+ is not None|isinstance\([\w.]+, [^()]+\)")
REASON = r"(?=\W*\w+\W+\w+)"
"""At least two words."""

# The needles are put together here so that this file does not contain them.
UNFINISHED = re.compile(
    "|".join(rf"\b{start}{end}\b" for start, end in (("TO", "DO"), ("FIX", "ME"), ("X", "XX")))
)
MACHINE_PATH = re.compile(r"(?<![\w.~*-])/(?:work|root|home)" + "/")
REGISTRY_HOST = re.compile(
    "|".join(
        name + r"\." + top
        for name, top in (
            ("pypi", "org"),
            ("python" + "hosted", "org"),
            ("npmjs", "(?:org|com)"),
            ("crates", "io"),
            ("golang", "org"),
            ("maven", "(?:org|apache)"),
            ("debian", "org"),
        )
    )
)


def outside_comes_in_as_an_argument(source: Source) -> Iterator[Finding]:
    """Time, randomness and ids are real in two places only."""
    if not (source.is_python and source.inside(*CORE)):
        return
    if source.inside("lakebed/backends/system", "lakebed/bootstrap", *PROGRAMS):
        return
    for node, name in source.references():
        for pattern, instead in BANNED.items():
            if re.fullmatch(pattern, name):
                yield Finding(source.path, node.lineno, f"{name} is not for the core: {instead}")
    for call in calls(source):
        if not (call.args or call.keywords) and ast.unparse(call.func) in {
            name for name, meaning in source.imports().items() if meaning == "random.Random"
        } | {"random.Random"}:
            yield Finding(source.path, call.lineno, f"random.Random() has no seed: {CHANCE}")


def rows_stay_in_arrow(source: Source) -> Iterator[Finding]:
    """Rows become Python objects only where their number has a bound."""
    if not source.inside(*CORE):
        return
    for call in calls(source):
        if isinstance(call.func, ast.Attribute) and call.func.attr in {
            "to_pylist",
            "to_pydict",
            "as_py",
        }:
            span = range(call.lineno, (call.end_lineno or call.lineno) + 1)
            if not any(
                re.search(r"# bounded: \S+", source.comments.get(line, "")) for line in span
            ):
                yield Finding(
                    source.path,
                    call.lineno,
                    f".{call.func.attr}() makes a Python object per row: use Arrow's kernels, or "
                    "say what bounds the rows in a comment `# bounded: reason`",
                )


def nothing_is_left_unfinished(source: Source) -> Iterator[Finding]:
    for number, line in enumerate(source.lines, 1):
        if found := UNFINISHED.search(line):
            yield Finding(
                source.path, number, f"{found[0]}: do it, or write it down as a limit in docs/"
            )


def modules_say_what_they_hold(source: Source) -> Iterator[Finding]:
    for part in source.module.split(".") if source.is_python else ():
        if part in VAGUE:
            yield Finding(source.path, 1, f"`{part}` says nothing: name it after what it does")


def modules_are_short(source: Source) -> Iterator[Finding]:
    if source.is_python and len(source.lines) > MODULE_LINES_MAX:
        yield Finding(
            source.path,
            len(source.lines),
            f"{len(source.lines)} lines, {MODULE_LINES_MAX} allowed: split it by what it decides",
        )


def functions_fit_on_a_screen(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield Finding(
                    source.path,
                    node.lineno,
                    f"{node.name} has {lines} lines, {FUNCTION_LINES_MAX} allowed: "
                    "take out a step and name it",
                )


def errors_are_caught_by_kind(source: Source) -> Iterator[Finding]:
    """Only a worker's loop, the command line and what a deployment waits for answer for any error;
    to undo and raise is fine."""
    answering = ("lakebed/tasks", "lakebed/cli", "lakebed/feeds/worker", "lambdas/shape")
    of_many_tables = ("lakebed/statestore/committer", "lakebed/compaction/dead_letters")
    if source.inside(*answering, *of_many_tables, *PROGRAMS):
        return
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and ast.unparse(node.body[-1]) != "raise":
            caught = ast.unparse(node.type) if node.type else "everything"
            if re.search(r"\b(everything|Exception|BaseException)\b", caught):
                yield Finding(
                    source.path,
                    node.lineno,
                    f"catches {caught}: catch a class of lakebed.errors by what to do next; "
                    "any error at all is for loops of workers, lakebed/cli and lambdas/shape",
                )


def guards_are_raised(source: Source) -> Iterator[Finding]:
    """`python -O` drops asserts: they say what a type checker cannot know. What data or callers may
    break is an `if` that raises. Kernels are compiled, and some stores are for tests only."""
    unlike = ("lakebed/kernels", "lakebed/backends/faulty", "lakebed/backends/memory")
    if not (source.is_python and source.inside("lakebed")) or source.inside(*unlike):
        return
    for node in source.nodes:
        if isinstance(node, ast.Assert) and not NARROWS.fullmatch(ast.unparse(node.test)):
            yield Finding(
                source.path,
                node.lineno,
                f"`assert {ast.unparse(node.test)}` is gone under -O: raise AssertionError, unless "
                "it narrows a type (`is not None`, `isinstance`)",
            )


def exceptions_to_rules_have_reasons(source: Source) -> Iterator[Finding]:
    marks = (
        r"#\s*noqa\b(:\s*[A-Z]+\d+(\s*,\s*[A-Z]+\d+)*)?",
        r"#\s*type:\s*ignore\b(\[[\w, -]+\])?",
        r"#\s*pragma:\s*no (cover|branch)\b",
    )
    for number, comment in source.comments.items() if source.is_python else ():
        for mark in marks:
            if (found := re.search(mark, comment)) and not re.match(REASON, comment[found.end() :]):
                yield Finding(source.path, number, f"`{found[0]}` needs a reason after it")


def lines_are_short(source: Source) -> Iterator[Finding]:
    if not (source.is_python or source.path.endswith((".toml", ".sql", "Makefile"))):
        return
    for number, line in enumerate(source.lines, 1):
        if len(line) > COLUMNS_MAX:
            yield Finding(
                source.path, number, f"{len(line)} columns, {COLUMNS_MAX} allowed: break it"
            )


def pages_have_one_title(source: Source) -> Iterator[Finding]:
    if source.is_markdown:
        titles = [number for number, line in prose(source) if line.startswith("# ")]
        if len(titles) != 1:
            line = titles[1] if titles else 1
            yield Finding(source.path, line, f"{len(titles)} titles: a page has one line `# ...`")


def pages_are_narrow(source: Source) -> Iterator[Finding]:
    """Prose of pages is read in a terminal, too. Tables, code and what links lead to may be long;
    pages that are made from sources are as these are."""
    if not source.is_markdown or source.inside("docs/reference", "lakebed/pages"):
        return
    for number, line in prose(source):
        columns = len(re.sub(r"\]\([^)]*\)", "]", line))
        if columns > COLUMNS_MAX and not line.lstrip().startswith("|"):
            yield Finding(
                source.path,
                number,
                f"{columns} columns, {COLUMNS_MAX} allowed: `python -m docs.wrapping {source.path}`"
                " wraps it",
            )


def links_lead_somewhere(source: Source) -> Iterator[Finding]:
    if not source.is_markdown:
        return
    for number, line in prose(source):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            path = target.partition("#")[0]
            if re.match(r"\w+:", target) or not path:
                continue
            if not Path(normpath((ROOT / source.path).parent / path)).exists():
                yield Finding(source.path, number, f"{target} is not there: mend the link")


def paths_are_built_in_one_place(source: Source) -> Iterator[Finding]:
    if not source.inside(*CORE) or source.path == "lakebed/model/paths.py":
        return
    docstrings = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}
    for node in source.nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "tables/" in node.value
            and id(node) not in docstrings
        ):
            yield Finding(
                source.path, node.lineno, "builds an object path: ask lakebed/model/paths.py"
            )


def nothing_names_a_machine(source: Source) -> Iterator[Finding]:
    for number, line in enumerate(source.lines, 1):
        if found := MACHINE_PATH.search(line):
            yield Finding(
                source.path, number, f"`{found[0]}` is one machine's: write a relative path"
            )
        if found := REGISTRY_HOST.search(line):
            yield Finding(source.path, number, f"`{found[0]}`: say the package's name instead")


def modules_are_used(sources: Iterable[Source]) -> Iterator[Finding]:
    """Something other than its own unit test imports every module of the library."""
    python = [source for source in sources if source.is_python]
    imported: set[str] = set()
    for source in python:
        if not source.inside("tests/unit"):
            imported |= imported_modules(source) - {source.module}
    for source in python:
        entry = (
            source.path.endswith(("/__init__.py", "/__main__.py"))
            or source.module in ENTRIES
            or source.inside(*PROGRAMS)
        )
        if source.inside(*CORE) and not entry and source.module not in imported:
            yield Finding(source.path, 1, "nothing but its test imports it: use it or delete it")


RULES: tuple[Rule, ...] = (
    outside_comes_in_as_an_argument,
    rows_stay_in_arrow,
    nothing_is_left_unfinished,
    modules_say_what_they_hold,
    modules_are_short,
    functions_fit_on_a_screen,
    errors_are_caught_by_kind,
    guards_are_raised,
    exceptions_to_rules_have_reasons,
    lines_are_short,
    pages_have_one_title,
    pages_are_narrow,
    links_lead_somewhere,
    paths_are_built_in_one_place,
    nothing_names_a_machine,
)


def calls(source: Source) -> Iterator[ast.Call]:
    return (node for node in source.nodes if isinstance(node, ast.Call))


def prose(source: Source) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page that are not code."""
    inside = False
    for number, line in enumerate(source.lines, 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def imported_modules(source: Source) -> set[str]:
    """All that its imports may load: `from a.b import c` names both a.b and a.b.c."""
    modules: set[str] = set()
    package = source.module.split(".")
    if not source.path.endswith("/__init__.py"):
        package.pop()
    for node in source.nodes:
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            modules |= {base} | {f"{base}.{name.name}" for name in node.names}
    return modules
