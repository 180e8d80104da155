"""Layers of points that GDAL reads and writes: GeoPackage, FlatGeobuf, Shapefile, ..."""

import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyogrio.raw
import shapely

from geoind.errors import InvalidInputError
from geoind.files.formats import Kind
from geoind.files.parquet import BATCH_ROWS
from geoind.files.rows import BatchRows, Rows
from geoind.files.sources import Reading, Wanted
from geoind.space.crs import as_crs
from geoind.space.vector_files import VectorFile, driver_of
from geoind.tables import LonLat, Points, Recipe
from geoind.tables.names import named_path

__all__ = ["OgrSource", "try_ogr", "write_ogr"]

LAYER = b"layer"
"""The metadata entry for the layer's name."""


@dataclass
class OgrSource:
    """A layer of points that GDAL reads.

    Parameters
    ----------
    name : str
        The file; some are folders.
    reading : Reading
        How to read it.
    wanted : Wanted
        What of it.
    """

    name: str
    reading: Reading
    wanted: Wanted
    unit: str = "row"
    about: dict[str, Any] = field(default_factory=dict)
    _done: int = 0

    def __post_init__(self) -> None:
        self.reading.fit(Kind("ogr", ""))
        if any(isinstance(place, LonLat) for place in self.wanted.places):
            raise InvalidInputError("lon and lat are not for files of geometries: the geometry is the place")

    def _layer(self, file: VectorFile) -> str:
        """Return the layer that was chosen, or the only one."""
        names = [name for name, kind in file.layers.items() if kind is not None]
        if self.reading.layer is None and len(names) == 1:
            return names[0]
        if self.reading.layer is None or self.reading.layer not in names:
            known = named_path(", ".join(names)) or "none: there are no places"
            raise InvalidInputError(f"layer must be one of {known}")
        return self.reading.layer

    @property
    def geometry(self) -> str:
        """The column of points."""
        return self.about["geometry_name"] or "wkb_geometry"

    @property
    def crs(self) -> str | None:
        """The layer's CRS, or the one that was given where it has none."""
        given = [place.crs for place in self.wanted.places if isinstance(place, Points)]
        return self.about["crs"] or next(iter(given), None)

    def rows(self) -> Iterator[Rows]:
        """Yield the layer's rows."""
        with VectorFile(self.name) as file:
            layer = self._layer(file)
            self.about, reader = file.read(layer, batch_size=BATCH_ROWS)
            self._done = 0
            # Its name is an entry of the table's metadata: looked at, and dropped or kept.
            schema = reader.schema.with_metadata({LAYER: layer.encode()})
            yield BatchRows(pa.RecordBatch.from_pylist([], schema=schema), 0)
            flat = self.about["geometry_type"] == "Point"
            batches = reader.read_all().combine_chunks().to_batches() if self.wanted.at_once else reader
            for batch in batches:
                self._done += len(batch)
                shapes = batch if flat else _without_heights(batch, self.geometry)
                yield BatchRows(shapes.replace_schema_metadata(schema.metadata), self._done - len(batch))

    def share(self) -> float | None:
        """Return how much of the layer was read."""
        return None

    def recipe(self, recipe: Recipe, rows: Rows) -> Recipe:  # noqa: ARG002
        """Return a recipe that knows the layer's column of points and its CRS."""
        given = next((place for place in recipe.places if isinstance(place, Points)), Points())
        crs = as_crs(self.crs, "the layer")
        if given.geometry not in (None, self.geometry):
            raise InvalidInputError(f"the layer's geometry is {self.geometry!r}, not {given.geometry!r}")
        return replace(recipe, places=(Points(self.geometry, crs),))

    def finish(self, recipe: Recipe) -> None:
        """Refuse nothing: the schema told all names."""


def write_ogr(source: OgrSource, batches: Iterator[pa.RecordBatch], target: Path) -> None:
    """Write a layer of reports, in the source's CRS."""
    if target.suffix.lower() == ".zip":
        raise InvalidInputError("a .zip file is read, not written: use .shp or .gpkg")
    first = next(batches)
    layer = first.schema.metadata.get(LAYER)
    failure: list[BaseException] = []

    def guarded() -> Iterator[pa.RecordBatch]:
        yield first
        try:
            yield from batches
        except BaseException as error:
            # On its way through GDAL the error would become another.
            failure.append(error)
            raise

    try:
        with warnings.catch_warnings(action="ignore"):
            pyogrio.raw.write_arrow(
                pa.RecordBatchReader.from_batches(first.schema, guarded()),
                target,
                layer=layer.decode() if layer is not None and target.suffix.lower() == ".gpkg" else None,
                driver=driver_of(target),
                geometry_name=source.geometry,
                geometry_type="Point",
                crs=source.crs,
            )
    except InvalidInputError:
        raise
    except Exception as error:
        if failure:
            raise failure[0] from None
        # Not its message: GDAL's may quote what the file holds.
        raise InvalidInputError(f"GDAL cannot write this ({type(error).__name__})") from None


def try_ogr(source: OgrSource, schema: pa.Schema, target: str) -> None:
    """Refuse a target that GDAL cannot write: by a layer of one made-up row, somewhere else."""
    row = {source.geometry: shapely.to_wkb(shapely.Point(0, 0))}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, Path(target).name)
        write_ogr(source, iter([pa.RecordBatch.from_pylist([row], schema=schema)]), place)
        if not place.is_file():
            raise InvalidInputError(f"GDAL writes {place.suffix} files as folders: choose another format")


def _without_heights(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Return the batch with shapes of two dimensions: a height tells places apart."""
    at = batch.schema.get_field_index(name)
    shapes = shapely.force_2d(shapely.from_wkb(batch.column(at).to_numpy(zero_copy_only=False)))
    return batch.set_column(at, batch.schema.field(at), pa.array(shapely.to_wkb(shapes), pa.binary()))
