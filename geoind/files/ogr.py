"""Whatever pyogrio reads and writes: GeoPackage, FlatGeobuf, Shapefile, ..."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from geoind.errors import InvalidInputError
from geoind.files.table import BATCH_ROWS, TableJob

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["obfuscate_ogr"]


def obfuscate_ogr(source: str, target: Path, job: TableJob, layer: str | None) -> None:
    """Write a layer of points with reports in place of the truth, in the source's CRS."""
    import pyarrow as pa
    import pyogrio
    import pyogrio.raw

    name = _layer(source, layer)
    failure: list[BaseException] = []

    def obfuscated(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        try:
            yield from job.batches(batches)
        except BaseException as error:
            # On its way through GDAL the error would become another.
            failure.append(error)
            raise

    try:
        with (
            warnings.catch_warnings(action="ignore"),
            pyogrio.raw.open_arrow(source, layer=name, batch_size=BATCH_ROWS, use_pyarrow=True) as (about, reader),
        ):
            if about["crs"] is None:
                raise InvalidInputError("the layer must have a CRS: without one nobody knows what a metre is")
            job.geometry = about["geometry_name"] or "wkb_geometry"
            job.crs = about["crs"]
            schema = job.find_columns(reader.schema)
            batches = reader if about["geometry_type"] == "Point" else _without_heights(reader, job.geometry)
            pyogrio.raw.write_arrow(
                pa.RecordBatchReader.from_batches(schema, obfuscated(batches)),
                target,
                layer=name if target.suffix.lower() == ".gpkg" else None,
                driver=_driver(source, name, target),
                geometry_name=job.geometry,
                geometry_type="Point",
                crs=about["crs"],
            )
    except InvalidInputError:
        raise
    except Exception as error:
        if failure:
            raise failure[0] from None
        # Not its message: GDAL's may quote what the file holds.
        raise InvalidInputError(f"GDAL cannot read or write this ({type(error).__name__})") from None


def _without_heights(batches: "Iterator[pa.RecordBatch]", name: str) -> "Iterator[pa.RecordBatch]":
    """Return the batches with shapes of two dimensions: a height tells places apart."""
    import pyarrow as pa
    import shapely

    for batch in batches:
        at = batch.schema.get_field_index(name)
        shapes = shapely.force_2d(shapely.from_wkb(batch.column(at).to_numpy(zero_copy_only=False)))
        yield batch.set_column(at, batch.schema.field(at), pa.array(shapely.to_wkb(shapes), pa.binary()))


def _driver(source: str, layer: str, target: Path) -> str:
    """Return what writes the target: what reads the source, if they are called alike."""
    import pyogrio

    if Path(source).suffix.lower() == target.suffix.lower():
        return str(pyogrio.read_info(source, layer=layer)["driver"])
    try:
        return str(pyogrio.detect_write_driver(target))
    except ValueError:
        raise InvalidInputError(f"GDAL has not one way to write a {target.suffix or 'nameless'} file") from None


def _layer(source: str, layer: str | None) -> str:
    import pyogrio

    try:
        names = [str(name) for name, kind in pyogrio.list_layers(source) if kind is not None]
    except Exception:
        raise InvalidInputError(f"{source} is no file that GDAL can read") from None
    if layer is None and len(names) == 1:
        return names[0]
    if layer is None or layer not in names:
        raise InvalidInputError(f"--layer must be one of {', '.join(names) or 'none: there are no places'}")
    return layer
