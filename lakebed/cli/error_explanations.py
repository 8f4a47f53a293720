"""Explains every error by its docstring: what it means, and what to do.

From these the page `docs/reference/errors.md` and `lakebed explain CODE` are made.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import NamedTuple

from lakebed import errors, feed_errors
from lakebed.errors import LakebedError


class ErrorExplanation(NamedTuple):
    """The explanation of an error, as the docstring of its class gives it."""

    code: str
    exit_code: int
    kind: str
    cause: str
    done: str
    can_do: str

    def text(self) -> str:
        """Return it for people."""
        return (
            f"{self.code} ({self.kind}, exit code {self.exit_code})\n\n{self.cause}\n\n"
            f"What is done: {self.done}\nWhat you can do: {self.can_do}"
        )


def explanation_of(error: type[LakebedError]) -> ErrorExplanation:
    """Return what an error's docstring says: its cause, then what is done and what you can do."""
    lines = " ".join(inspect.cleandoc(error.__dict__.get("__doc__") or "").split())
    cause, _, rest = lines.partition(" What is done: ")
    done, _, can_do = rest.partition(" What you can do: ")
    kinds = [c for c in error.__mro__ if issubclass(c, LakebedError) and c is not LakebedError]
    return ErrorExplanation(error.code(), error.exit_code, kinds[-1].code(), cause, done, can_do)


def explanations() -> list[ErrorExplanation]:
    """Return the explanation of every error, kinds before what belongs to them."""
    classes = {*_classes(errors), *_classes(feed_errors)}
    found = [e for e in classes if issubclass(e, LakebedError) and e is not LakebedError]
    every = [explanation_of(error) for error in found]
    return sorted(every, key=lambda e: (e.exit_code, e.code != e.kind, e.code))


def _classes(module: ModuleType) -> list[type]:
    return [found for _, found in inspect.getmembers(module, inspect.isclass)]
