"""Writes the modules of `lakebed.aio` from the classes that they are twins of."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

from lakebed.bootstrap.open_lake import OpenLake
from lakebed.lake import Lake
from lakebed.table import Table

ROOT = Path(__file__).resolve().parents[1]
ROOM = "lakebed.aio"
FACES = (Lake, Table)
OWNERS = [o for f in FACES for o in f.__mro__ if issubclass(o, OpenLake) and o is not OpenLake]
SOURCES = list(dict.fromkeys(owner.__module__ for owner in OWNERS))
TWINNED = {
    name
    for source in SOURCES
    for name, one in vars(import_module(source)).items()
    if isinstance(one, type) and one.__module__ == source
}
"""Classes that have a twin: it is given where one of these is returned, and taken in its place."""
PLAIN = {"name", "position"}
"""Properties that are known without looking at the lake."""
LEFT_OUT = {"wait"}
"""Methods without a twin: this one would hold a thread as long; `asyncio.sleep` holds none."""
TWIN_NAMES = {"__getitem__": "__getitem__", "__iter__": "__aiter__"}
"""Methods of Python's own that have a twin, and its name."""
STREAMS = {"pa.RecordBatchReader": "Batches"}
"""What is given instead of what a method returns; of other iterators it is `AsyncItems`."""
HEAD = '"""{first}\n\nMade by `make docs` from `{source}`; change it there.\n"""\n'


def twins() -> dict[str, Callable[[], str]]:
    """Return what makes the text of each module, by its path."""
    return {f"lakebed/aio/{name_of(source)}.py": partial(twin, source) for source in SOURCES}


@cache
def twin(source: str) -> str:
    """Return the text of the module that is the twin of a module."""
    module = import_module(source)
    tree = ast.parse(inspect.getsource(module))
    body = [text for node in tree.body for text in made_of(node, module)]
    code = "\n\n".join(body)
    names = {n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name)}
    imports, for_types = imports_of(tree, source, names)
    own = [name for name in ("Batches", "AsyncItems") if name in names]
    imports += [f"from {ROOM}.batches import {name}" for name in own]
    calls = [name for name in ("Calls", "Later", "Stop", "Twin", "THREADS") if name in names]
    imports += [f"from {ROOM}.calls import {name}" for name in calls]
    first = f"The async twin of `{source}`."
    lines = [HEAD.format(first=first, source=source.replace(".", "/") + ".py")]
    lines += ["from __future__ import annotations", *imports]
    if for_types:
        lines += ["if TYPE_CHECKING:", *(f"    {line}" for line in for_types)]
        lines.insert(2, "from typing import TYPE_CHECKING")
    return formatted("\n".join([*lines, code, ""]))


def made_of(node: ast.stmt, module: ModuleType) -> Iterator[str]:
    """Yield what becomes of a class or a function of a module; nothing of all else."""
    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
        yield class_of(node, getattr(module, node.name))
    elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
        yield connecting(node)


def class_of(node: ast.ClassDef, owner: type) -> str:
    """Return the twin of a class."""
    (base,) = owner.__bases__
    above = "Twin" if base in {OpenLake, object} else base.__name__
    members = [text for member in node.body for text in member_of(member, node.name)]
    if any(isinstance(m, ast.FunctionDef) and m.name == "__enter__" for m in node.body):
        members += [IN_WITH]
    text = "\n\n".join([doc(node), f"_sync: Sync{node.name}", *members])
    return f"class {node.name}({above}):\n{textwrap.indent(text, '    ')}"


IN_WITH = """
async def __aenter__(self) -> Self:
    return self

async def __aexit__(self, *_: object) -> None:
    await self.close()
"""


def member_of(node: ast.stmt, owner: str) -> Iterator[str]:
    """Yield the twin of a public field, method or property, and of `[]` and `for`."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield field_of(node.target.id, ast.unparse(node.annotation))
    if not isinstance(node, ast.FunctionDef) or node.name in LEFT_OUT:
        return
    if node.name.startswith("_") and node.name not in TWIN_NAMES:
        return
    decorators = [ast.unparse(one) for one in node.decorator_list]
    returns = ast.unparse(node.returns) if node.returns else "None"
    if decorators == ["property"]:
        yield property_of(node, returns)
    elif not decorators:
        yield method_of(node, returns, owner)
    else:
        raise NotImplementedError(f"{owner}.{node.name} has decorators")


def field_of(name: str, kind: str) -> str:
    """Return the twin of a field, which is known without looking at the lake."""
    return f"@property\ndef {name}(self) -> {kind}:\n    return self._sync.{name}"


def property_of(node: ast.FunctionDef, returns: str) -> str:
    """Return the twin of a property: what is awaited."""
    if node.name in PLAIN:
        body, given = f"return self._sync.{node.name}", returns
    else:
        body, given = (
            f"return Later(self._calls, lambda: self._sync.{node.name})",
            f"Later[{returns}]",
        )
    text = f"{doc(node)}\n{body}"
    return f"@property\ndef {node.name}(self) -> {given}:\n{textwrap.indent(text, '    ')}"


def method_of(node: ast.FunctionDef, returns: str, owner: str) -> str:
    """Return the twin of a method."""
    given_on = passed_on(node)
    call = f"self._sync.{node.name}({given_on})"
    if node.name == "__getitem__":
        call = f"self._sync[{given_on}]"
    elif node.name == "__iter__":
        call = "iter(self._sync)"
    lines = [doc(node)]
    stops = any(a.arg == "should_stop" for a in node.args.kwonlyargs)
    given, is_async = returns, True
    if stops:
        lines.append("stop = Stop(should_stop)")
        call = call.replace("should_stop=should_stop", "should_stop=stop")
    called = f"lambda: {call}" if given_on else f"self._sync.{node.name}"
    run = f"self._calls.run({called}{', stop' if stops else ''})"
    if node.name == "close":
        lines.append(f"await self._calls.finish({called})")
    elif returns in STREAMS or returns.startswith("Iterator["):
        given, is_async = stream_of(returns), False
        item = returns.removeprefix("Iterator[").removesuffix("]")
        if item in TWINNED:
            call = f"({item}(self._calls, one) for one in {call})"
            called = f"lambda: {call}"
        lines.append(f"return {given}(self._calls, {called})")
    elif returns in TWINNED:
        made = f"{returns}(self._calls, {call})"
        if node.name == "__getitem__":
            given, is_async = f"Later[{returns}]", False
            lines.append(f"return Later(self._calls, lambda: {made})")
        else:
            lines.append(f"return await self._calls.run(lambda: {made})")
    elif TWINNED & {n.id for n in ast.walk(ast.parse(returns)) if isinstance(n, ast.Name)}:
        raise NotImplementedError(f"{owner}.{node.name} returns {returns}")
    else:
        lines.append(f"{'' if returns == 'None' else 'return '}await {run}")
    word = "async def" if is_async else "def"
    body = textwrap.indent("\n".join(lines), "    ")
    name = TWIN_NAMES.get(node.name, node.name)
    return f"{word} {name}({ast.unparse(node.args)}) -> {given}:\n{body}"


def stream_of(returns: str) -> str:
    """Return what is given instead of an iterator."""
    return STREAMS.get(returns) or "AsyncItems" + returns.removeprefix("Iterator")


def connecting(node: ast.FunctionDef) -> str:
    """Return the twin of `connect`."""
    assert node.name == "connect", "the one function of the face"
    arguments = f"{ast.unparse(node.args)}, threads: int = THREADS"
    described = (ast.get_docstring(node) or "").replace(
        "\n\nRaises:", "\nthreads: calls that run at once, at the most.\n\nRaises:"
    )
    quoted = textwrap.indent(f'"""{described}\n"""', "    ")
    return f"""
async def connect({arguments}) -> Lake:
{quoted}
    calls = Calls(threads)
    try:
        sync = await calls.run(lambda: sync_connect({passed_on(node, method=False)}))
    except BaseException:
        calls.close()
        raise
    return Lake(calls, sync)
"""


def passed_on(node: ast.FunctionDef, *, method: bool = True) -> str:
    """Return the arguments of a function as it hands them to another one with the same: of a twin
    what it is a twin of."""
    args = node.args
    by_order = [handed(a) for a in (*args.posonlyargs, *args.args)][method:]
    by_name = [f"{a.arg}={handed(a)}" for a in args.kwonlyargs]
    rest = [f"**{args.kwarg.arg}"] if args.kwarg else []
    return ", ".join([*by_order, *by_name, *rest])


def handed(argument: ast.arg) -> str:
    """Return an argument as the sync class takes it."""
    kind = ast.unparse(argument.annotation) if argument.annotation else ""
    return f"{argument.arg}._sync" if kind in TWINNED else argument.arg


def doc(node: ast.ClassDef | ast.FunctionDef) -> str:
    """Return the docstring of a twin in its quotes; of several lines, the last has only these."""
    text = ast.get_docstring(node) or f"As `{node.name}` of the sync class."
    return f'"""{text}"""' if "\n" not in text else f'"""{text}\n"""'


def imports_of(tree: ast.Module, source: str, names: set[str]) -> tuple[list[str], list[str]]:
    """Return the imports that a twin needs of its source: at run time, and for types only."""
    now: list[str] = []
    for_types: list[str] = []
    for node in tree.body:
        inside = node.body if isinstance(node, ast.If) else [node]
        found = for_types if isinstance(node, ast.If) else now
        for one in inside:
            found += imported(one, names)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            now += [f"from {source} import {name}" for name in sorted(bound & names)]
        if isinstance(node, ast.ClassDef) and f"Sync{node.name}" in names:
            now.append(f"from {source} import {node.name} as Sync{node.name}")
        if isinstance(node, ast.FunctionDef) and f"sync_{node.name}" in names:
            now.append(f"from {source} import {node.name} as sync_{node.name}")
    return now, for_types


def imported(node: ast.stmt, names: set[str]) -> Iterator[str]:
    """Yield what a statement imports of some names, as the twin imports it."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if (alias.asname or alias.name) in names:
                yield f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if (alias.asname or alias.name) in names:
                yield f"from {twin_room(node.module or '', alias.name)} import {alias.name}"


def twin_room(module: str, name: str) -> str:
    """Return where a twin imports a name from: a class of the face from its twin."""
    is_face = module.startswith("lakebed.face.") or module in {f.__module__ for f in FACES}
    return (
        f"{ROOM}.{name_of(module)}"
        if is_face and name[:1].isupper() and not name.isupper()
        else module
    )


def name_of(module: str) -> str:
    """Return the last part of a module's name."""
    return module.rpartition(".")[2]


def formatted(text: str) -> str:
    """Return a module as `make check` wants it."""
    for arguments in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        command = [
            sys.executable,
            "-m",
            "ruff",
            *arguments,
            "--stdin-filename",
            "lakebed/aio/x.py",
            "-",
        ]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, cwd=ROOT, check=False
        )
        if not done.stdout:
            raise RuntimeError(f"{done.stderr}\n{text}")
        text = done.stdout
    return text
