"""Run the notebooks and store them with their output: small pictures, short text, nothing about this machine.

python3 dev.py notebooks              all of them
python3 dev.py notebooks 03 09        those whose names begin so

GEOIND_PLACES=FILE runs notebooks on your own locations, in any format of `geoind obfuscate`. The stored output is
always that of synthetic locations.
"""

import base64
import hashlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).resolve().parent
PLACES = "GEOIND_PLACES"
COLOURS = 64
"""Of a stored picture: enough for these pictures, at a third of the bytes."""


def books() -> list[Path]:
    """Return the notebooks in their order."""
    return sorted(FOLDER.glob("*.ipynb"))


def run(path: Path, folder: Path, *, places: Path | None = None) -> Any:
    """Return a notebook that was run in a folder, on synthetic locations or on those of a file."""
    book = nbformat.read(path, as_version=4)
    environment = {key: value for key, value in os.environ.items() if key != PLACES}
    environment["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    if places is not None:
        environment[PLACES] = str(places)
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(book, timeout=300, kernel_name="python3", resources=resources, record_timing=False)
    client.execute(env=environment)
    return book


def sources(book: Any) -> str:
    """Return a digest of the cells, with which a test checks that the stored output belongs to them."""
    digest = hashlib.sha256()
    for cell in book.cells:
        digest.update(f"{cell.cell_type}\n{cell.source}\n".encode())
    return digest.hexdigest()[:16]


def refresh(path: Path) -> None:
    """Run a notebook and store it."""
    before = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        book = run(path, Path(folder))
    book.metadata = {**before.metadata, "geoind": {"sources": sources(book)}}
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = _smaller(output.data["image/png"])
    nbformat.write(book, path)


def _smaller(picture: str) -> str:
    """Return a PNG, in base64, with few colours."""
    image = (
        Image.open(io.BytesIO(base64.b64decode(picture)))
        .convert("RGB")
        .quantize(COLOURS, dither=Image.Dither.NONE)
    )
    small = io.BytesIO()
    image.save(small, "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def main() -> None:
    """Refresh what was asked for."""
    for path in books():
        if len(sys.argv) == 1 or path.name.startswith(tuple(sys.argv[1:])):
            print(path.name, flush=True)
            refresh(path)


if __name__ == "__main__":
    main()
