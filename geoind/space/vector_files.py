"""Vector files that GDAL reads, and the process that reads them, or a raster (`geoind.space.raster_files`).

The suffix of a file chooses the driver, from a closed list. Its first bytes must be those
of the format. It is opened in a process that has this driver only (`geoind.space.gdal_process`), without network.
GDAL looks for companions of a file next to it, and writes there, too. So it is given a private folder
with the file and its permitted companions, and never the folder of the file.
"""

import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import pyarrow as pa

from geoind.errors import InvalidInputError
from geoind.space.crs import parsed_crs

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

__all__ = [
    "DRIVERS",
    "SEQUENCES",
    "VectorFile",
    "driver_of",
    "gdal_path",
    "gdal_process",
    "read_vector_file",
    "reading",
]

DRIVERS: Mapping[str, str] = {
    ".gpkg": "GPKG",
    ".fgb": "FlatGeobuf",
    ".shp": "ESRI Shapefile",
    ".zip": "ESRI Shapefile",
    ".kml": "LIBKML",
    ".gml": "GML",
    ".sqlite": "SQLite",
    ".mif": "MapInfo File",
    ".dxf": "DXF",
    ".geojson": "GeoJSON",
    ".json": "GeoJSON",
    ".geojsonl": "GeoJSON",
    ".geojsonseq": "GeoJSON",
    ".osm": "OSM",
    ".osm.pbf": "OSM",
}
"""The driver that reads and writes a file, by its suffix. A .zip is an archive of one shapefile."""

BEGINNINGS = {
    ".gpkg": rb"SQLite format 3\0",
    ".sqlite": rb"SQLite format 3\0",
    ".fgb": rb"fgb.fgb",
    ".shp": rb"\0\0\x27\x0a",
    ".zip": rb"PK\x03\x04",
    ".kml": rb"(\xef\xbb\xbf)?\s*(?=<)(?=.*<(\w+:)?kml[\s>])",
    ".gml": rb"(\xef\xbb\xbf)?\s*(?=<)(?=.*opengis\.net/gml)",
    ".mif": rb"\s*(?i:version)\s",
    ".dxf": rb"\s*(0|999)\s|AutoCAD Binary DXF",
    ".geojson": rb"(\xef\xbb\xbf)?\s*[\[{]",
    ".json": rb"(\xef\xbb\xbf)?\s*[\[{]",
    ".geojsonl": rb'(\xef\xbb\xbf)?[\s\x1e]*\{(?=.*"Feature")',
    ".geojsonseq": rb'(\xef\xbb\xbf)?[\s\x1e]*\{(?=.*"Feature")',
    ".osm": rb"(\xef\xbb\xbf)?\s*(?=<)(?=.*<osm[\s>])",
    ".osm.pbf": rb"\0\0\0.\x0a\x09OSMHeader",
    ".tif": rb"II[*+]\0|MM\0[*+]",
    ".tiff": rb"II[*+]\0|MM\0[*+]",
    ".asc": rb"\s*(?i:ncols|nrows|[xy]ll(corner|center)|cellsize|d[xy]|nodata_value)\s",
}
"""What the first 8 KiB of a file match, by its suffix."""

COMPANIONS: Mapping[str, tuple[str, ...]] = {
    ".shp": (".shx", ".dbf", ".prj", ".cpg"),
    ".mif": (".mid",),
    ".gml": (".xsd",),
    ".asc": (".prj",),
}
"""The other files that are read together with a file, by its suffix. Indexes and .gfs files are not needed."""

DATABASES = (".gpkg", ".sqlite")
SEQUENCES = (".geojsonl", ".geojsonseq")
"""Features line by line, or each after a record separator."""

NO_NETWORK = {
    **dict.fromkeys(
        ("GDAL_HTTP_PROXY", "GDAL_HTTPS_PROXY", "http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"),
        # The discard port of this machine: a request ends there.
        "http://127.0.0.1:9",
    ),
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none",
    "GDAL_DRIVER_PATH": "disable",
    "GDAL_VRT_ENABLE_PYTHON": "NO",
    "GML_SKIP_RESOLVE_ELEMS": "ALL",
    "OGR_SQLITE_PRAGMA": "trusted_schema=0",
    "PROJ_NETWORK": "OFF",
}
TEMPORARY = ("CPL_TMPDIR", "SQLITE_TMPDIR", "TMPDIR")
REMOVED = ("no_proxy", "NO_PROXY", "OGR_SQLITE_LOAD_EXTENSIONS", "OGR_SQLITE_LIST_VIRTUAL_OGR")

INDEX = re.compile(r'CREATE VIRTUAL TABLE ("([^"]|"")*"|\w+) USING rtree\s*\(', re.IGNORECASE)
"""The one virtual table that is read: a spatial index, which names no other file."""

SHAPEFILE = {".shp", ".shx", ".dbf", ".prj", ".cpg", ".qix", ".sbn", ".sbx", ".qpj", ".xml"}


def driver_of(path: str | Path) -> str:
    """Return the GDAL driver for a file, by its suffix.

    Examples
    --------
    >>> driver_of("homes.gpkg"), driver_of("Helsinki.osm.pbf")
    ('GPKG', 'OSM')
    >>> driver_of("homes.vrt")
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: 'homes.vrt' must end in one of .gpkg, .fgb, .shp, .zip, .kml, .gml, ...
    """
    suffix = _suffix(path)
    if suffix not in DRIVERS:
        raise InvalidInputError(f"{Path(path).name!r} must end in one of {', '.join(DRIVERS)}")
    return DRIVERS[suffix]


def _suffix(path: str | Path) -> str:
    name = Path(path).name.lower()
    return ".osm.pbf" if name.endswith(".osm.pbf") else Path(name).suffix


@contextmanager
def gdal_process(path: Path, driver: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the process that reads a local file with one driver, in a private folder, and end it afterwards."""
    kept = {name: value for name, value in os.environ.items() if name not in REMOVED}
    search = {"PYTHONPATH": os.pathsep.join(str(Path(part).absolute()) for part in sys.path if part)}
    script = Path(__file__).with_name("gdal_process.py")
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="geoind-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary)).resolve()
        descriptors = _put_into(folder, path, stack)
        place = _checked(folder / path.name)
        own = NO_NETWORK | {"PYTHONUTF8": "1"} | dict.fromkeys(TEMPORARY, str(folder))
        process = subprocess.Popen(
            [sys.executable, "-P", str(script), driver, place, *map(str, descriptors)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Not its messages: GDAL's may quote what the file holds.
            stderr=subprocess.DEVNULL,
            env=kept | search | own,
            cwd=folder,
            pass_fds=descriptors,
        )
        stack.callback(_end, process)
        yield process


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


@contextmanager
def reading(path: Path, driver: str) -> Iterator[None]:
    """Turn what goes wrong in the process, or in what it sends, into one error."""
    try:
        yield
    except (EOFError, OSError, ValueError, pa.ArrowException):
        raise InvalidInputError(f"GDAL cannot read {path.name!r} as {driver}") from None


class VectorFile:
    """The layers of a file, in a `with`: a process with the driver of its suffix reads them.

    Parameters
    ----------
    path : str or Path
        The file: a local one, never an address, a connection string or a path of GDAL's virtual file systems.

    Examples
    --------
    >>> import geopandas, shapely, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "homes.gpkg")
    ...     geopandas.GeoDataFrame(geometry=[shapely.Point(2, 48)], crs=4326).to_file(place)
    ...     with VectorFile(place) as file:
    ...         about, reader = file.read("homes")
    ...         file.layers, about["geometry_type"], reader.read_all().num_rows
    ({'homes': 'Point'}, 'Point', 1)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.driver = driver_of(path)
        self.layers: dict[str, str | None] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._process = stack.enter_context(gdal_process(self.path, self.driver))
            with reading(self.path, self.driver):
                self.layers = dict(self._answer())
            self._opened = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def read(
        self, layer: str, *, columns: Sequence[str] | None = None, geometry: bool = True, batch_size: int = 65_536
    ) -> tuple[dict[str, Any], pa.RecordBatchReader]:
        """Return what is known of a layer (crs, geometry_name, geometry_type), and all or some columns."""
        request = {"layer": layer, "columns": columns, "read_geometry": geometry, "batch_size": batch_size}
        with reading(self.path, self.driver):
            stdin, stdout = self._process.stdin, self._process.stdout
            if stdin is None or stdout is None:
                raise EOFError
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            about = self._answer()
            stream = pa.ipc.open_stream(stdout)
        return about, pa.RecordBatchReader.from_batches(stream.schema, self._batches(stream))

    def frame(self, layer: str) -> "GeoDataFrame":
        """Return all rows of a layer; invalid shapes are missing."""
        import geopandas
        import shapely

        about, reader = self.read(layer)
        frame = reader.read_all().to_pandas()
        shapes = shapely.from_wkb(frame.pop(about["geometry_name"] or "wkb_geometry"), on_invalid="ignore")
        crs = parsed_crs(about["crs"]) if about["crs"] else None
        return geopandas.GeoDataFrame(frame, geometry=shapes, crs=crs)

    def _batches(self, stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with reading(self.path, self.driver):
            yield from stream
            self._answer()

    def _answer(self) -> Any:
        stdout = self._process.stdout
        line = b"" if stdout is None else stdout.readline()
        if not line:
            raise EOFError
        return json.loads(line)


def read_vector_file(path: str | Path) -> "GeoDataFrame":
    """Return the first layer of a file that has geometries; invalid shapes are missing.

    Examples
    --------
    >>> import geopandas, shapely, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "homes.geojson")
    ...     geopandas.GeoDataFrame({"name": ["Ana"]}, geometry=[shapely.Point(2, 48)], crs=4326).to_file(place)
    ...     read_vector_file(place)["name"].tolist()
    ['Ana']
    """
    with VectorFile(path) as file:
        spatial = [name for name, kind in file.layers.items() if kind is not None]
        if not spatial:
            raise InvalidInputError(f"{file.path.name!r} has no geometries")
        return file.frame(spatial[0])


def _put_into(folder: Path, path: Path, stack: ExitStack) -> list[int]:
    """Put a file and its companions into a private folder; return the open files that it refers to.

    A link to an open file costs nothing and cannot be exchanged after the check. A database is copied: SQLite
    resolves links, and would read and write the log next to the original.
    """
    suffix = _suffix(path)
    if "\0" in str(path) or not path.is_file():
        raise InvalidInputError(f"{path.name!r} must be a local file: there is none")
    copied = suffix in DATABASES or not Path("/proc/self/fd").is_dir()
    both = [end for known in COMPANIONS.get(suffix, ()) for end in (known, known.upper())]
    descriptors = []
    for part in (path, *map(path.with_suffix, both)):
        descriptor = _opened(part, path)
        if descriptor is None:
            continue
        stack.callback(os.close, descriptor)
        place = folder / part.name
        if copied:
            try:
                with open(descriptor, "rb", closefd=False) as source, place.open("xb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
            except OSError as error:
                raise InvalidInputError(
                    f"cannot copy {part.name!r} to a temporary folder ({error.strerror}): TMPDIR can name another"
                ) from None
        else:
            place.symlink_to(f"/proc/self/fd/{descriptor}")
            descriptors.append(descriptor)
    if suffix in DATABASES:
        _refuse_unfinished(path)
    return descriptors


def _opened(part: Path, path: Path) -> int | None:
    """Return a descriptor of a file or of a companion of it, None for a companion that does not exist."""
    # Only the file itself may be a symbolic link. A pipe must not block.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    flags |= 0 if part == path else getattr(os, "O_NOFOLLOW", 0)
    rule = f"{part.name!r} must be a regular file that can be read" + ("" if part == path else ", not a link")
    try:
        descriptor = os.open(part, flags)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and part != path:
            return None
        raise InvalidInputError(rule) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidInputError(rule)
    return descriptor


def _refuse_unfinished(path: Path) -> None:
    """Refuse a database with a log next to it, whose changes are not in the file.

    The log can add what was not checked. Without it the rows would be old.
    """
    for end in ("-wal", "-journal"):
        log = Path(f"{path.resolve()}{end}")
        with suppress(FileNotFoundError):
            found = log.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size:
                raise InvalidInputError(
                    f"{path.name!r} has changes in {log.name!r} that are not in the file: close the program that "
                    "writes it, or save the layer as a new file"
                )


def gdal_path(path: Path) -> str:
    """Return the path of a file for GDAL, which takes some paths for other files.

    Examples
    --------
    >>> gdal_path(Path("in.zip!homes.shp"))
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: 'in.zip!homes.shp': GDAL reads /vsi, ! and ; in a path as commands: rename it
    """
    if re.match(r"/+vsi", str(path)) or re.search("[!;]", str(path)):
        raise InvalidInputError(f"{path.name!r}: GDAL reads /vsi, ! and ; in a path as commands: rename it")
    return str(path)


def _checked(path: Path) -> str:
    """Return the path for GDAL, after checks of its name and its content."""
    place, name, suffix = gdal_path(path), path.name, _suffix(path)
    with path.open("rb") as file:
        begins = file.read(8192)
    if re.match(BEGINNINGS[suffix], begins, re.DOTALL) is None:
        raise InvalidInputError(f"{name!r} does not begin like a {suffix} file: it has another format")
    if suffix in DATABASES:
        _refuse_active_tables(path)
    if suffix in SEQUENCES:
        return _collection_of(path, separated=b"\x1e" in begins)
    return place if suffix != ".zip" else f"{place}!{_shapefile_in(path)}"


def _collection_of(path: Path, *, separated: bool) -> str:
    """Return the path of a sequence of features as one collection.

    GDAL's driver for sequences has no option that leaves text which looks like a date as it is.
    """
    collection, comma = path.with_suffix(".geojson"), b""
    with path.open("rb") as source, collection.open("xb") as target:
        source.seek(3 if source.read(3) == b"\xef\xbb\xbf" else 0)
        target.write(b'{"type": "FeatureCollection", "features": [')
        for line in source:
            # A feature is a line, or all lines up to the next record separator.
            rest, *features = line.split(b"\x1e") if separated else (b"", line)
            target.write(rest)
            for feature in features:
                if separated or feature.strip():
                    target.write(comma + feature)
                    comma = b","
        target.write(b"]}")
    return str(collection)


def _refuse_active_tables(path: Path) -> None:
    """Refuse a database that computes when it is read: a view or a virtual table can name other files."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as database:
            texts = dict(database.execute("SELECT name, sql FROM sqlite_master"))
            tables = database.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'").fetchall()
            active = any(
                (kind in ("view", "virtual") and INDEX.match(str(texts.get(name))) is None)
                or database.execute("SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden > 1", (name,)).fetchone()
                for name, kind in tables
            )
    except (sqlite3.Error, UnicodeError):
        raise InvalidInputError(f"{path.name!r} is damaged, incomplete or not a database") from None
    if active:
        raise InvalidInputError(
            f"{path.name!r} has views, virtual tables or computed columns, which are not read: "
            "save the layer as a table of a new file"
        )


def _shapefile_in(path: Path) -> str:
    """Return the name of the one shapefile in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX/" not in name]
    except (zipfile.BadZipFile, OSError, UnicodeError):
        raise InvalidInputError(f"{path.name!r} is damaged, incomplete or not a compressed file") from None
    shapes = [name for name in names if name.lower().endswith(".shp")]
    odd = [
        name
        for name in names
        if Path(name).suffix.lower() not in SHAPEFILE
        or Path(name).is_absolute()
        or ".." in Path(name).parts
        or re.search(r"[!;\\\x00-\x1f]", name)
    ]
    if len(shapes) != 1 or odd:
        raise InvalidInputError(f"{path.name!r} must hold one file of text, or one shapefile and its parts alone")
    return shapes[0]
