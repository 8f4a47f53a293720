"""Users' files by URL, for callers of the library: the scheme says which port reads them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from lakebed.backends.web.source_files import SCHEMES as WEB
from lakebed.backends.web.source_files import WebSourceFiles
from lakebed.errors import InvalidError
from lakebed.model.addresses import scheme_of
from lakebed.ports.clock import Clock
from lakebed.ports.source_files import SourceFile, SourceFiles

IN_S3 = "s3"


class UrlFiles:
    """Files in S3 and on the web. folder: for them while they are read. in_s3: who knows those in
    S3; None: found out when asked, with the credentials that boto3 finds."""

    def __init__(
        self, folder: Path, *, in_s3: SourceFiles | None, clock: Clock, rng: random.Random
    ) -> None:
        self._folder = folder
        self._in_s3 = in_s3
        self._clock, self._rng = clock, rng
        self._web = WebSourceFiles(folder)

    def find(self, name: str) -> list[SourceFile]:
        """Return the files of a URL. Raises: InvalidError for other schemes, too."""
        return self._owner(name).find(name)

    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> AbstractContextManager[Path]:
        """Have a file at a path of this machine."""
        return self._owner(file.name).on_disk(file, spans)

    def _owner(self, name: str) -> SourceFiles:
        scheme = scheme_of(name)
        if "://" not in name:
            hint = "give it as text: a Path makes one slash of two"
            raise InvalidError("an address has lost a slash", file=name, hint=hint)
        if scheme in WEB:
            return self._web
        if scheme == IN_S3:
            if self._in_s3 is None:
                self._in_s3 = self._found_in_s3()
            return self._in_s3
        hint = "files come from paths of this machine, s3://BUCKET/KEY and https://HOST/PATH"
        raise InvalidError("files of this kind cannot be read", file=name, hint=hint)

    def _found_in_s3(self) -> SourceFiles:
        try:
            from lakebed.backends.aws.clients import AmazonClients
            from lakebed.bootstrap.aws_stores import source_files_of

            clients = AmazonClients(clock=self._clock, rng=self._rng)
            return source_files_of(clients, self._rng, self._folder)
        except ImportError as error:
            if error.name not in {"boto3", "botocore", "obstore"}:
                raise
            hint = "install them: pip install 'lakebed[aws]', or -r requirements/aws.txt"
            raise InvalidError(
                "files in S3 need boto3 and obstore", missing=error.name, hint=hint
            ) from None
