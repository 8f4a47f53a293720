"""The project's files as the tidy rules see them."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "app",
    "containers",
    "lakebed",
    "lambdas",
    "localcloud",
    "spark_jobs",
    "stacks",
    "tests",
    "benchmarks",
    "demo",
    "docs",
)

PRODUCT = ("app", "containers", "lakebed", "lambdas", "localcloud", "spark_jobs", "stacks")


@dataclass(frozen=True)
class Source:
    """One text file, with its path from the top of the project."""

    path: str
    text: str

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py") and self.inside(*CODE)

    @property
    def is_markdown(self) -> bool:
        return self.path.endswith(".md")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """Every part of a Python file; nothing of any other file."""
        return tuple(ast.walk(self.tree)) if self.is_python else ()

    @cached_property
    def comments(self) -> dict[int, str]:
        """The comment of each line that has one."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}

    @property
    def module(self) -> str:
        """Its dotted name: `lakebed.model.key`."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def inside(self, *places: str) -> bool:
        """Does it lie in one of these folders, or is it that module?"""
        return any(
            self.path == f"{place}.py" or self.path.startswith(f"{place}/") for place in places
        )

    def imports(self) -> dict[str, str]:
        """What each imported name stands for: `{"now": "time.time"}`."""
        names: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for name in node.names:
                    top = name.name.partition(".")[0]
                    names[name.asname or top] = name.name if name.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for name in node.names:
                    names[name.asname or name.name] = f"{node.module}.{name.name}"
        return names

    def references(self) -> Iterator[tuple[ast.expr, str]]:
        """Every use of something imported, by its full dotted name."""
        names = self.imports()
        for node in self.nodes:
            if isinstance(node, ast.Attribute | ast.Name):
                first, dot, rest = ast.unparse(node).partition(".")
                if re.fullmatch(r"[\w.]*", rest) and first in names:
                    yield node, f"{names[first]}{dot}{rest}"


@dataclass(frozen=True)
class Finding:
    """One violation, said so that the reader knows what to write instead."""

    path: str
    line: int
    says: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.says}"


def project_files() -> Iterator[Source]:
    """Every text file that is committed or about to be."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    for path in sorted(filter(None, listing.stdout.split("\0"))):
        try:
            yield Source(path, (ROOT / path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            # not text; deleted and not yet committed; a link to a folder
            continue


def product() -> list[Source]:
    """Return the modules that are the product, without what tests, measures or explains it."""
    modules = [s for s in project_files() if s.path.endswith(".py") and s.inside(*PRODUCT)]
    assert len(modules) > 200
    return modules
