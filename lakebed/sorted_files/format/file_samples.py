"""Samples of files, read without Arrow: lambdas that move no rows split leaves by them."""

from __future__ import annotations

from lakebed.errors import CorruptError
from lakebed.model.files import FilePart
from lakebed.model.samples import Sample
from lakebed.model.schema import Schema
from lakebed.parquet_bytes.footer import Footer
from lakebed.parquet_bytes.thrift import MalformedError
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.file_notes import decode_notes, verify_tail


class FileSamples:
    """Reads samples from tails, one at a time, and keeps none."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects

    def sample(self, schema: Schema, part: FilePart) -> Sample:
        """Return the sample of a file, inside the part's region.

        Raises:
            ObjectMissingError: the file is not there.
            CorruptError: the tail contradicts its checksum, or is none.
        """
        file = part.file
        (raw,) = self._objects.read(part.path, [(file.tail_offset, file.size)])
        verify_tail(part, raw)
        try:
            footer = Footer(raw, file.tail_offset)
        except MalformedError as error:
            raise CorruptError(
                "a file has no footer", path=part.path, problem=str(error)
            ) from error
        return decode_notes(footer.key_values, part.path).sample.inside(part.key_range)
