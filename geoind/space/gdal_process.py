"""A process that reads one vector file or raster with one GDAL driver, for `geoind.space.vector_files`.

GDAL probes the content of a file with every registered driver, and a text file can ask for the driver of a web
service or of a virtual file. pyogrio has no argument for the allowed drivers, and drivers are registered for the
whole process. So the file is read in a process of its own that has one driver. It is started with the path of
this file, and imports nothing from geoind.

A CRS or a schema in the file can name other files, and GDAL and PROJ open them while they read the layers. On
Linux the process gives up access to all other files first (Landlock, since Linux 5.13).
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["serve", "serve_raster"]

SYSTEM = ("/usr", "/lib", "/lib64")
"""Folders of libraries and their data, next to those of Python."""

OPTIONS = {"GML": {"WRITE_GFS": "NO"}, "GeoJSON": {"DATE_AS_STRING": "YES", "ARRAY_AS_STRING": "YES"}}
"""Options of the drivers: nothing is written next to a file, and text that looks like a date stays text."""

READ, READ_AND_WRITE = 0b1100, 0b1111111111110
"""Landlock's access to files below a folder: open for reading and list; everything but execution."""


def serve(driver: str, path: str, files: list[int], requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer with the layers as one line of JSON; then, for each request, with a layer as an Arrow stream.

    The working directory is private to this process. `files` are open files that it refers to.
    """
    # pyogrio imports these if it can, and needs none of them here: two seconds less.
    for name in ("geopandas", "pandas", "pyproj", "shapely"):
        sys.modules[name] = None  # type: ignore[assignment]
    import pyarrow as pa
    import pyogrio
    import pyogrio.raw

    _keep_one_driver(driver)
    _give_up_other_files((pa, pyogrio), files)
    layers = [[str(layer), None if kind is None else str(kind)] for layer, kind in pyogrio.list_layers(path)]
    _answer(answers, layers)
    for line in requests:
        request = json.loads(line)
        with pyogrio.raw.open_arrow(path, use_pyarrow=True, **request, **OPTIONS.get(driver, {})) as (
            about,
            reader,
        ):
            _answer(answers, {name: about[name] for name in ("crs", "geometry_name", "geometry_type")})
            count = 0
            with pa.ipc.new_stream(answers, reader.schema) as stream:
                for batch in reader:
                    stream.write_batch(batch)
                    count += len(batch)
        # -1 where the file does not say.
        if driver == "FlatGeobuf" and pyogrio.read_info(path)["features"] not in (-1, count):
            raise RuntimeError("the file is not complete")
        # A failed process also ends the stream; this line marks a complete one.
        _answer(answers, "complete")


def serve_raster(driver: str, path: str, files: list[int], requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer with what the file says of its raster; then, if asked, with the pixels above 0 as an Arrow stream.

    A pixel is its column, its row and its value. What has no data, or no finite value, is left out.
    """
    import numpy as np
    import pyarrow as pa
    import rasterio
    from rasterio.windows import Window

    _give_up_other_files((pa, np, rasterio), files)
    # Only this driver is tried. No other file is looked for.
    options = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_CACHEMAX": 64}
    with rasterio.Env(**options), rasterio.open(path, driver=driver) as raster:
        about = {
            "crs": raster.crs.to_wkt() if raster.crs else None,
            "transform": list(raster.transform)[:6],
            "shape": [raster.height, raster.width],
            "block": list(raster.block_shapes[0]) if raster.count else [0, 0],
            "bands": raster.count,
            "numbers": all(np.dtype(kind).kind in "uif" for kind in raster.dtypes),
        }
        _answer(answers, about)
        if not requests.readline():
            return
        schema = pa.schema({"column": pa.int32(), "row": pa.int32(), "value": pa.float64()})
        # Whole blocks, so that each is decoded once.
        height, width = (max(block, 1024 // block * block) for block in about["block"])
        with pa.ipc.new_stream(answers, schema) as stream:
            for top in range(0, raster.height, height):
                for left in range(0, raster.width, width):
                    size = min(width, raster.width - left), min(height, raster.height - top)
                    found = raster.read(1, window=Window(left, top, *size), masked=True).filled(0)
                    values = found.astype(np.float64) * raster.scales[0] + raster.offsets[0]
                    rows, columns = np.nonzero((found != 0) & (values > 0) & (values < np.inf))
                    parts = (columns + left).astype(np.int32), (rows + top).astype(np.int32), values[rows, columns]
                    stream.write_batch(pa.record_batch([*map(pa.array, parts)], schema=schema))
    _answer(answers, "complete")


def _keep_one_driver(driver: str) -> None:
    import pyogrio
    from pyogrio._ogr import _register_drivers

    others = [name for name in pyogrio.list_drivers() if name != driver]
    # The Arrow stream of FlatGeobuf itself has wrong offsets after a feature without geometry.
    pyogrio.set_gdal_config_options({"OGR_FLATGEOBUF_STREAM_BASE_IMPL": "YES"})
    pyogrio.set_gdal_config_options({"GDAL_SKIP": ",".join(others), "OGR_SKIP": ",".join(others)})
    # Registers again, and then removes what is to be skipped.
    _register_drivers()
    if set(pyogrio.list_drivers()) != {driver}:
        raise RuntimeError("GDAL must have this driver, and no other")


def _give_up_other_files(modules: Iterable[Any], files: list[int]) -> None:
    """Give up access to all but these files, those of libraries and of the working directory; and TCP."""
    data = [os.environ[name] for name in ("GDAL_DATA", "PROJ_DATA", "PROJ_LIB") if name in os.environ]
    packages = [str(Path(module.__file__).parents[1]) for module in modules]
    folders = [*SYSTEM, *data, *packages, sys.prefix, sys.base_prefix]
    call = ctypes.CDLL(None, use_errno=True).syscall if sys.platform == "linux" else None
    # The numbers of these calls are the same on all processors.
    create, add, restrict = 444, 445, 446
    version = -1 if call is None else call(create, None, ctypes.c_size_t(0), 1)
    if call is None or version < 1:
        return
    # Connections are restricted since version 4.
    handled = (ctypes.c_uint64 * 2)(READ_AND_WRITE | 1, 3 if version >= 4 else 0)
    rules = call(create, handled, ctypes.c_size_t(16 if version >= 4 else 8), 0)
    allowed = [(READ, os.open(folder, os.O_PATH)) for folder in folders if Path(folder).is_dir()]
    allowed += [(READ_AND_WRITE, os.open(".", os.O_PATH)), *((0b100, file) for file in files)]
    failed = rules < 0
    for access, descriptor in allowed:
        rule = access.to_bytes(8, sys.byteorder) + descriptor.to_bytes(4, sys.byteorder)
        failed |= call(add, rules, 1, rule, 0) != 0
    # No program that is started can gain rights (PR_SET_NO_NEW_PRIVS): a condition of the last call.
    failed |= ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) != 0 or call(restrict, rules, 0) != 0
    if failed:
        raise RuntimeError("access to other files must be given up")
    for descriptor in (rules, *(descriptor for _, descriptor in allowed if descriptor not in files)):
        os.close(descriptor)


def _answer(answers: BinaryIO, value: Any) -> None:
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    # Whatever a library prints goes to standard error, not into the answers.
    _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _serve = serve_raster if sys.argv[1] in ("GTiff", "AAIGrid") else serve
    _serve(sys.argv[1], sys.argv[2], [int(file) for file in sys.argv[3:]], sys.stdin.buffer, _answers)
    _answers.close()
