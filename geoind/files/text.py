"""Text files, a few megabytes at a time."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, Protocol

from geoind.errors import InvalidInputError
from geoind.files.rejects import Rejects
from geoind.files.textbatch import TextBatch
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import obfuscate_lonlat
from geoind.randomness import KeyedRandomness

__all__ = ["TextFormat", "obfuscate_text"]


class TextFormat(Protocol):
    """What reads one format."""

    left: list[str]
    """Columns that stay although their names sound as if they told a place."""

    def batches(self, stream: BinaryIO) -> Iterator[TextBatch]:
        """Return a file's records in batches."""
        ...


def obfuscate_text(
    source: BinaryIO,
    target: IO[bytes],
    text_format: TextFormat,
    mechanism: Mechanism,
    *,
    decimals: int,
    key: bytes | None,
    rejects: Rejects,
    progress: Callable[[int], None],
) -> int:
    """Write the records of a stream with reports in place of the truth and return how many reports there are."""
    count = 0
    for batch in _undamaged(text_format.batches(source)):
        rejects.add(batch.problems)
        rng = None if key is None else KeyedRandomness(key, batch.labels)
        truth = batch.lonlat
        target.writelines(batch.filled(obfuscate_lonlat(truth, mechanism, rng=rng), decimals))
        count += len(truth)
        progress(count)
    return count


def _undamaged(batches: Iterator[TextBatch]) -> Iterator[TextBatch]:
    try:
        yield from batches
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InvalidInputError("the input is not, or not completely, a compressed file") from None
