from pathlib import Path

import msgspec
import pytest

from lakebed.errors import CorruptError, ObjectMissingError
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.names import FileName
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import schema_of
from lakebed.sorted_files.format.file_samples import FileSamples
from tests.unit.sorted_files.lakes import Lake, batch_of

SCHEMA = schema_of(row_keys={"a": "int64"}, values={"v": "string"})


def written(lake: Lake) -> FilePart:
    rows = [{"a": n, "v": f"value {n}"} for n in range(2_000)]
    with lake.files.sorter(SCHEMA) as sorter:
        sorter.add(batch_of(SCHEMA, rows))
        file = lake.write(SCHEMA, sorter.sorted_batches(EVERYTHING), [EVERYTHING])
    assert file is not None
    return lake.part(file, EVERYTHING)


def test_samples_are_those_that_arrow_finds(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    whole = written(lake)
    half = KeyRange(b"", encode_key(SCHEMA.row_keys, [1_000]))
    samples = FileSamples(lake.objects)
    for part in (whole, msgspec.structs.replace(whole, key_range=half)):
        found = samples.sample(SCHEMA, part)
        assert found == lake.files.sample(SCHEMA, part)
        assert found.keys
    assert len(samples.sample(SCHEMA, part).keys) < len(samples.sample(SCHEMA, whole).keys)


def test_a_file_that_is_gone_or_damaged_gives_no_sample(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    part = written(lake)
    samples = FileSamples(lake.objects)
    wrong = msgspec.structs.replace(part.file, tail_checksum=part.file.tail_checksum ^ 1)
    with pytest.raises(CorruptError, match="tail contradicts its checksum"):
        samples.sample(SCHEMA, msgspec.structs.replace(part, file=wrong))
    gone = msgspec.structs.replace(part.file, name=FileName(bytes(16)))
    with pytest.raises(ObjectMissingError):
        samples.sample(SCHEMA, msgspec.structs.replace(part, file=gone, path="tables/t/files/x"))
