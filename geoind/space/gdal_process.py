"""A process that reads one vector file with one GDAL driver, for `geoind.space.vector_files`.

GDAL probes the content of a file with every registered driver, and a text file can ask for the driver of a web
service or of a virtual file. pyogrio has no argument for the allowed drivers, and drivers are registered for the
whole process. So the file is read in a process of its own that has one driver. It is started with the path of
this file, and imports nothing from geoind.
"""

import json
import os
import sys
from typing import Any, BinaryIO

__all__ = ["serve"]


def serve(driver: str, path: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer with the layers as one line of JSON; then, for each request, with a layer as an Arrow stream."""
    # pyogrio imports these if it can, and needs none of them here: two seconds less.
    for name in ("geopandas", "pandas", "pyproj", "shapely"):
        sys.modules[name] = None  # type: ignore[assignment]
    import pyarrow as pa
    import pyogrio
    import pyogrio.raw

    _keep_one_driver(driver)
    options = {"WRITE_GFS": "NO"} if driver == "GML" else {}
    layers = [[str(layer), None if kind is None else str(kind)] for layer, kind in pyogrio.list_layers(path)]
    _answer(answers, layers)
    for line in requests:
        layer, size = json.loads(line)
        with pyogrio.raw.open_arrow(path, layer=layer, batch_size=size, use_pyarrow=True, **options) as (
            about,
            reader,
        ):
            _answer(answers, {name: about[name] for name in ("crs", "geometry_name", "geometry_type")})
            with pa.ipc.new_stream(answers, reader.schema) as stream:
                for batch in reader:
                    stream.write_batch(batch)
        # A failed process also ends the stream; this line marks a complete one.
        _answer(answers, "complete")


def _keep_one_driver(driver: str) -> None:
    import pyogrio
    from pyogrio._ogr import _register_drivers

    others = [name for name in pyogrio.list_drivers() if name != driver]
    pyogrio.set_gdal_config_options({"GDAL_SKIP": ",".join(others), "OGR_SKIP": ",".join(others)})
    # Registers again, and then removes what is to be skipped.
    _register_drivers()
    if set(pyogrio.list_drivers()) != {driver}:
        raise RuntimeError("GDAL must have this driver, and no other")


def _answer(answers: BinaryIO, value: Any) -> None:
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    # Whatever a library prints goes to standard error, not into the answers.
    _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.argv[1], sys.argv[2], sys.stdin.buffer, _answers)
    _answers.close()
