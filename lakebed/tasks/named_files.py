"""Users' files that a message names, each once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lakebed.errors import InvalidError
from lakebed.model.names import RequestDigest, digest_of
from lakebed.ports.source_files import SourceFile, SourceFiles
from lakebed.user_files.input_files import format_of

PROBLEMS_LISTED = 10
"""Most problems that are listed of files that cannot be had."""


def named_files(names: Iterable[str], files: SourceFiles) -> list[SourceFile]:
    """Return all files of these names, each once.

    Raises:
        InvalidError: some cannot be had; it names them. UnavailableError: ask again.
    """
    found: dict[str, SourceFile] = {}
    problems: list[InvalidError] = []
    for name in names:
        try:
            for file in files.find(name):
                format_of(Path(file.name))
                found[file.name] = file
        except InvalidError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        listed = "; ".join(str(problem) for problem in problems[:PROBLEMS_LISTED])
        hint = "mend the message, or the files, then send it again"
        raise InvalidError(
            "the named files cannot be read", count=len(problems), problems=listed, hint=hint
        )
    return list(found.values())


def digest_of_names(names: Iterable[str]) -> RequestDigest:
    """Return what stands for a request for files: their names, so that it is the same request
    when they were changed since, or are gone."""
    return digest_of(*(name.encode() for name in names))
