"""Users' files on web servers: `https://HOST/PATH`, also addresses that are signed."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from lakebed.errors import InvalidError, StorageFullError, UnavailableError, UnreadableInputError
from lakebed.ports.source_files import SourceFile

SCHEMES = ("https", "http")
ANSWER_SECONDS = 60.0
"""Most seconds that a server may send nothing."""
ASKING = {"User-Agent": "lakebed"}
PIECE_BYTES = 1 << 20
SERVER_ERRORS = 500
BUSY = 429


class WebSourceFiles:
    """Files by URL: one file each, for the web has no folders. folder: for them while they are
    read, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, name: str) -> list[SourceFile]:
        """Return the file of a URL."""
        with _answer(name) as answer:  # a signed address answers GET only: its body is not read
            return [_seen(name, answer)]

    @contextmanager
    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[Path]:
        """Have a copy of a file, with the suffix that its URL has. All of it is copied."""
        suffix = PurePosixPath(urlsplit(file.name).path).suffix
        with TemporaryDirectory(prefix="source-", dir=self._folder) as folder:
            path = Path(folder) / f"rows{suffix}"
            with _answer(file.name) as answer:
                if _seen(file.name, answer) != file:
                    hint = "wait until the file is no longer written, then send the request again"
                    raise UnreadableInputError(
                        "a file was changed meanwhile", file=file.name, hint=hint
                    )
                _copy(answer, path, file)
            yield path


def _copy(answer: HTTPResponse, path: Path, file: SourceFile) -> None:
    try:
        with path.open("wb") as out:
            shutil.copyfileobj(answer, out, PIECE_BYTES)
    except (TimeoutError, ConnectionError, HTTPException) as error:
        raise _away(file.name, error) from error
    except OSError as error:
        hint = "free space, or send smaller files"
        raise StorageFullError("no room for a file", file=file.name, hint=hint) from error
    if file.size >= 0 and path.stat().st_size != file.size:
        raise _away(file.name, "it was cut off")


@contextmanager
def _answer(name: str) -> Iterator[HTTPResponse]:
    try:
        request = urllib.request.Request(name, headers=ASKING)  # noqa: S310  a URL of SCHEMES only
        answer = urllib.request.urlopen(request, timeout=ANSWER_SECONDS)  # noqa: S310  the same
    except urllib.error.HTTPError as error:
        error.close()
        if error.code >= SERVER_ERRORS or error.code == BUSY:
            raise _away(name, f"{error.code} {error.reason}") from None
        hint = "check the address; a signed address works for a limited time only"
        reason = f"{error.code} {error.reason}"
        raise InvalidError("no such file on the web", file=name, reason=reason, hint=hint) from None
    except (OSError, HTTPException) as error:
        raise _away(name, getattr(error, "reason", error)) from None
    except ValueError as error:
        hint = "write https://HOST/PATH"
        raise InvalidError("not an address", file=name, reason=error, hint=hint) from None
    with answer:
        yield answer


def _seen(name: str, answer: HTTPResponse) -> SourceFile:
    """Return the file of an answer. size: -1 where the server does not say."""
    headers = answer.headers
    version = headers.get("ETag") or headers.get("Last-Modified") or ""
    return SourceFile(name, int(headers.get("Content-Length", -1)), version)


def _away(name: str, reason: object) -> UnavailableError:
    return UnavailableError("a file on the web cannot be fetched now", file=name, reason=reason)
