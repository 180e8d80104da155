"""From record batch to record batch: `obfuscate_batch`, for one batch with one source of noise."""

from typing import Unpack

import pyarrow as pa

from geoind.mechanisms.protocol import Mechanism
from geoind.randomness import RandomnessLike
from geoind.tables import Missing, Recipe
from geoind.tables.recipe import TableOptions

__all__ = ["Missing", "obfuscate_batch"]


def obfuscate_batch(
    batch: pa.RecordBatch, mechanism: Mechanism, *, rng: RandomnessLike = None, **options: Unpack[TableOptions]
) -> pa.RecordBatch:
    """Return the batch with a report in place of each true location.

    Every other column, the order of rows and columns and the types stay as they are. A column that tells the place
    is an error. Of GeoParquet's boxes the file's is removed, each row's is made from its report.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Places as two columns of degrees, or as one column of points: WKB, or GeoArrow's struct or list of x, y.
    mechanism : Mechanism
        Anything that samples lon/lat reports, such as `SphericalLaplace(epsilon)`.
    rng : RandomnessLike
        None for fresh noise; `KeyedRandomness` with one label per row to get the same report again.
    **options
        `lon` and `lat`, or `geometry` and `crs`; `drop` and `keep`; `missing`; `order`; `key` and `id_column`: see
        `geoind.tables.Recipe`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from geoind import SphericalLaplace
    >>> batch = pa.RecordBatch.from_pydict({"trip": [7, 8], "lon": [2.2945, None], "lat": [48.8584, None]})
    >>> report = obfuscate_batch(batch, SphericalLaplace(0.01), missing="keep")
    >>> report.schema == batch.schema, report["trip"].to_pylist(), report["lat"].null_count
    (True, [7, 8], 1)
    """
    recipe = Recipe.of(mechanism=mechanism, **options)
    recipe.refuse_traces()
    return recipe.table(batch.schema).obfuscate(batch, rng=rng).batch
