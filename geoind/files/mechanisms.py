"""Mechanisms of a matrix in a file: a channel with its certificate, interpolated and projected or not.

The file is a Parquet table of the positive entries, ordered by input and output, with one metadata entry,
`geoind`, an object of JSON; docs/reference/formats.md describes it. It is not compressed: the digits of
probabilities are random, and what is not compressed cannot expand. For devices (`geoind.js`) the file is the
object of JSON itself, with the matrix in base 64.
"""

import base64
import binascii
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from geoind.accounting.record import MOST_BYTES, as_object
from geoind.arrays import FloatArray, IntArray, as_lonlat
from geoind.channels.channel import Channel, tight_epsilon
from geoind.channels.extended import ExtendedMatrix
from geoind.channels.interpolated import Interpolated
from geoind.channels.priors import Prior
from geoind.channels.rows import parts_of
from geoind.distances import Distance, euclidean
from geoind.errors import GeoindError, InvalidInputError
from geoind.files.writers import AtomicWriter
from geoind.mechanisms.projected import Projected
from geoind.optimal.problem import Certificate, OptimalChannel
from geoind.space.domain import LOCAL_RADIUS, largest_scale_within
from geoind.space.projection import Projection
from geoind.space.sites import Grid, Places, Sites, same_sites, sites_array

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["device_scale", "load_mechanism", "save_mechanism"]

FORMAT = "geoind mechanism 1"
SCHEMA = pa.schema({"input": pa.int32(), "output": pa.int32(), "probability": pa.float64()})
GROUP = 1 << 20
"""Rows that are written, and at most read, at a time."""
MOST_KEPT = 1 << 24
"""Most stored entries of an `ExtendedMatrix`: each is compared with all inputs."""
MOST_ENTRIES = 1 << 27
"""Most entries of a matrix, 1 GB: 11 585 inputs and outputs."""
MOST_ON_DEVICE = 1 << 23
"""Most entries of a matrix in a file for devices, 64 MB: 2 896 inputs and outputs."""
FARTHEST_ON_DEVICE = 1_000_000.0
"""Most metres from a device's origin to a place of its domain."""
MOST_TEXT = 16 << 20
"""Most bytes of a text in the file's footer."""
NAMES = frozenset(
    "format interpolated inputs outputs projection domain epsilon metric prior certificate".split()  # noqa: SIM905
)
RULES: dict[type, tuple[tuple[type, ...], Callable[[Any], bool], str]] = {
    # Squares of larger numbers would overflow.
    float: ((int, float), lambda number: abs(number) <= 1e100, "finite numbers"),
    int: ((int,), lambda number: 0 <= number < 1 << 53, "a whole number, not negative"),
    str: ((str,), lambda text: len(text) <= 1000 and text.isprintable(), "a short printable text"),
    bool: ((bool,), lambda _: True, "true or false"),
}
"""Of members of the JSON: the types that stand for a type, which values are valid, and this in words."""
ROUNDED = 1e-10
"""Excess of the promise of an `ExtendedMatrix` over its epsilon: processors round its entries differently."""


def save_mechanism(
    path: str | Path,
    mechanism: Channel | Interpolated | Projected,
    *,
    epsilon: float | None = None,
    prior: Prior | None = None,
    distance: Distance = euclidean,
) -> None:
    """Write a channel, also one that is interpolated or projected, to a Parquet file, or to JSON for a device.

    Parameters
    ----------
    path : path
        A name that ends in .json is for `geoind.js`: of a `Projected(Interpolated(channel))` on a grid, with at
        most 2^23 entries.
    mechanism : Channel, Interpolated or Projected
        A channel with its certificate if it has one; `Interpolated(channel)`; or one of them in a `Projected` with
        a local projection, and a box or nothing as its domain.
    epsilon : float, optional
        The promise, at least the measured epsilon, which is the default; of an extended matrix 1e-10 more.
    prior : Prior, optional
        The prior for which it is optimal; the file has its hash.
    distance : Distance
        The metric of the promise of a channel between sites.

    Examples
    --------
    >>> import tempfile
    >>> from geoind import Grid, planar_geometric
    >>> channel = planar_geometric(Grid(0, 0, cell=100, columns=5, rows=5), epsilon=0.01)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_mechanism(f"{folder}/city.parquet", Interpolated(channel))
    ...     again = load_mechanism(f"{folder}/city.parquet")
    >>> again.epsilon == Interpolated(channel).epsilon
    True
    """
    channel, about = _described(mechanism)
    _check_size(channel.inputs, channel.outputs)
    measured, on_device = _measured(mechanism, distance), Path(path).suffix == ".json"
    if on_device:
        measured = max(measured, _device_epsilon(mechanism))
    rule = channel.rows if isinstance(channel.rows, ExtendedMatrix) else None
    promised = measured * (1 if rule is None else 1 + ROUNDED) if epsilon is None else float(epsilon)
    if not measured <= promised:
        raise InvalidInputError(f"epsilon must be at least the measured {measured:.12g}, got {promised:.12g}")
    about |= {
        "epsilon": promised if promised < math.inf else None,
        "metric": _metric(channel, distance),
        "prior": None if prior is None else _hash_of(prior.sites.xy, prior.mass),
    }
    if not on_device:
        about["extension"] = None if rule is None else {"epsilon": rule.epsilon, "report": rule.report}
    text = json.dumps(about, allow_nan=False)
    if len(text) > MOST_BYTES:
        raise InvalidInputError(f"there are too many places: their text may have {MOST_BYTES:,} bytes")
    if on_device and isinstance(mechanism, Projected):
        entries = base64.b64encode(np.ascontiguousarray(channel.matrix, "<f8").data).decode()
        about |= {"reports": mechanism.reports.tolist(), "matrix": entries}
        with AtomicWriter() as writer:
            writer.open(path).write(json.dumps(about, allow_nan=False).encode())
        return
    _write_matrix(path, channel.rows, text)


def load_mechanism(
    path: str | Path, *, prior: Prior | None = None, distance: Distance = euclidean
) -> Channel | Interpolated | Projected:
    """Return what `save_mechanism` wrote, after its epsilon was measured again.

    Nothing in the file is executed. A file whose measured epsilon exceeds its promise is refused. The certificate
    is what the writer of the file stated: loss and bound cannot be computed from the file alone.

    Parameters
    ----------
    path : path
    prior : Prior, optional
        If it is given, the file must have been made for this prior.
    distance : Distance
        The metric of the promise, which must be that of the file.

    Examples
    --------
    >>> load_mechanism("nowhere.parquet")
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: 'nowhere.parquet' does not exist
    """
    if not Path(path).exists():
        raise InvalidInputError(f"{str(path)!r} does not exist")
    try:
        # What overflows is infinite, and no promise is.
        with np.errstate(all="ignore"):
            mechanism, about = _read(Path(path))
            if about["metric"] != _metric(_described(mechanism)[0], distance):
                raise InvalidInputError("its metric is not `distance=`")
            if prior is not None and about["prior"] != _hash_of(prior.sites.xy, prior.mass):
                raise InvalidInputError("it was not made for this prior")
            promised = math.inf if about["epsilon"] is None else _checked(about["epsilon"], "epsilon")
            if not (measured := _measured(mechanism, distance)) <= promised:
                raise InvalidInputError(f"it promises epsilon {promised:.6g}, but {measured:.6g} was measured")
    except (GeoindError, MemoryError) as error:
        reason = str(error) or "there is not enough memory"
        raise InvalidInputError(f"{str(path)!r} is not a mechanism saved by geoind: {reason}") from None
    return mechanism


def _described(mechanism: object) -> tuple[Channel, dict[str, Any]]:
    """Return the channel of a mechanism, and what surrounds it."""
    about: dict[str, Any] = {"format": FORMAT, "projection": None, "domain": None}
    inner = mechanism
    if isinstance(inner, Projected):
        origin = re.match(r"\+proj=aeqd \+lon_0=(\S+) \+lat_0=(\S+) ", inner.projection.crs)
        if origin is None:
            raise InvalidInputError("a projection that is saved must be a local one: Projection(lon, lat)")
        about["projection"] = [float(number) for number in origin.groups()]
        if inner.domain is not None:
            about["domain"] = list(inner.domain.bounds)
            if not shapely.box(*inner.domain.bounds).equals(inner.domain):
                raise InvalidInputError("a domain that is saved must be a box of degrees")
        inner = inner.mechanism
    about["interpolated"] = isinstance(inner, Interpolated)
    channel = inner.channel if isinstance(inner, Interpolated) else inner
    if not isinstance(channel, Channel):
        raise InvalidInputError("what is saved must be a Channel, also in Interpolated and Projected")
    same = same_sites(channel.inputs, channel.outputs)
    about |= {
        "inputs": sites_array(channel.inputs).tolist(),
        "outputs": None if same else sites_array(channel.outputs).tolist(),
        "certificate": None,
    }
    if isinstance(channel, OptimalChannel):
        # JSON has no infinity.
        members = asdict(channel.certificate).items()
        about["certificate"] = {name: None if value in (math.inf, -math.inf) else value for name, value in members}
    return channel, about


def _device_epsilon(mechanism: Channel | Interpolated | Projected) -> float:
    """Return the epsilon that a device measures."""
    inner = mechanism.mechanism if isinstance(mechanism, Projected) else None
    if not (isinstance(mechanism, Projected) and isinstance(inner, Interpolated)):
        raise InvalidInputError("a mechanism for a device must be a Projected(Interpolated(channel))")
    if inner.epsilon == math.inf:
        raise InvalidInputError("a mechanism without a finite epsilon is not saved for a device")
    scale = device_scale(inner.channel.inputs, inner.channel.outputs, mechanism.projection, mechanism.domain)
    return inner.epsilon * scale


def device_scale(inputs: Sites, outputs: Sites, projection: Projection, domain: "BaseGeometry | None") -> float:
    """Return the scale of the plane that a device computes with: the bound for the distance of its domain.

    Raise an error for a mechanism that a device cannot read.
    """
    if not (isinstance(inputs, Grid) and min(inputs.columns, inputs.rows) > 1):
        raise InvalidInputError("the inputs of a mechanism for a device must be a grid with rows and columns")
    if len(inputs) * max(len(inputs), len(outputs)) > MOST_ON_DEVICE:
        raise InvalidInputError(f"a matrix for a device may have {MOST_ON_DEVICE:,} entries")
    radius = LOCAL_RADIUS
    if domain is not None:
        west, south, east, north = domain.bounds
        corners = projection.to_xy([[lon, lat] for lon in (west, east) for lat in (south, north)])
        radius = float(np.hypot(*corners.T).max())
        if not (radius <= FARTHEST_ON_DEVICE and east - west <= 90):
            raise InvalidInputError("the domain of a mechanism for a device must lie within 1000 km of the origin")
    # A little more, for sums that are rounded in another order.
    return largest_scale_within(radius) * (1 + 1e-9)


def _measured(mechanism: Channel | Interpolated | Projected, distance: Distance) -> float:
    if distance is euclidean:
        return float(mechanism.epsilon)
    if not isinstance(mechanism, Channel):
        raise InvalidInputError("`distance=` is for a channel between sites: other mechanisms promise per metre")
    return float(tight_epsilon(mechanism, distance))


def _metric(channel: Channel, distance: Distance) -> str:
    if distance is euclidean:
        return "euclidean"
    return _hash_of(np.asarray(distance(channel.inputs.xy, channel.inputs.xy), np.float64))


def _hash_of(*arrays: FloatArray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array, "<f8").tobytes())
    return digest.hexdigest()


def _check_size(inputs: Sites, outputs: Sites) -> None:
    # The distances between the inputs need as much.
    if len(inputs) * max(len(inputs), len(outputs)) > MOST_ENTRIES:
        raise InvalidInputError(
            f"a matrix may have {MOST_ENTRIES:,} entries, not {len(inputs):,} x {len(outputs):,}"
        )


def _read(path: Path) -> tuple[Channel | Interpolated | Projected, dict[str, Any]]:
    try:
        inputs, outputs, matrix, about = (_read_json if path.suffix == ".json" else _read_parquet)(path)
    except (pa.ArrowException, OSError, MemoryError, UnicodeError) as error:
        # Not its message: it may quote the content of the file.
        raise InvalidInputError(f"it cannot be read ({type(error).__name__})") from None
    channel = Channel(inputs, outputs, matrix)
    if about["certificate"] is not None:
        certificate = Certificate(**_members(about["certificate"], "certificate", get_type_hints(Certificate)))
        channel = OptimalChannel(inputs, outputs, matrix, certificate)
    inner = Interpolated(channel) if about["interpolated"] else channel
    origin, box = about["projection"], about["domain"]
    if origin is not None:
        bounds: Any = None if box is None else _numbers(box, "domain", 4)
        domain = None if box is None else shapely.box(*bounds)
        return Projected(inner, Projection(*_numbers(origin, "projection", 2)), domain=domain), about
    if box is not None:
        raise InvalidInputError("domain must be null without a projection")
    return inner, about


def _read_parquet(path: Path) -> tuple[Sites, Sites, FloatArray | ExtendedMatrix, dict[str, Any]]:
    with pq.ParquetFile(
        pa.OSFile(str(path)),
        pre_buffer=False,
        thrift_string_size_limit=MOST_TEXT,
        page_checksum_verification=True,
    ) as file:
        if (file.schema_arrow.names, file.schema_arrow.types) != (SCHEMA.names, SCHEMA.types):
            raise InvalidInputError("its columns must be input, output and probability")
        about = as_object((file.schema_arrow.metadata or {}).get(b"geoind"))
        inputs, outputs = _ends(about, NAMES | {"extension"})
        return inputs, outputs, _read_matrix(file, inputs, len(outputs), about["extension"]), about


def _write_matrix(path: str | Path, matrix: FloatArray | ExtendedMatrix, metadata: str) -> None:
    """Write what is stored of a matrix, with the metadata `geoind`."""
    schema = SCHEMA.with_metadata({"geoind": metadata})
    encoding = {"input": "DELTA_BINARY_PACKED", "output": "DELTA_BINARY_PACKED", "probability": "PLAIN"}
    with (
        AtomicWriter() as writer,
        pq.ParquetWriter(
            writer.open(path),
            schema,
            compression="none",
            use_dictionary=False,
            column_encoding=encoding,
            write_page_checksum=True,
        ) as file,
    ):
        for inputs, outputs, values in _entries(matrix):
            columns = [inputs.astype(np.int32), outputs.astype(np.int32), values]
            file.write_table(pa.table(columns, schema=schema), GROUP)


def _read_matrix(
    file: pq.ParquetFile, inputs: Sites, outputs: int, extension: object
) -> FloatArray | ExtendedMatrix:
    """Return the matrix of a file; `extension` has epsilon and report of an `ExtendedMatrix`, or is None."""
    shape = len(inputs), outputs
    if extension is None:
        matrix = np.zeros(shape)
        for at, values in _numbered(file, shape):
            matrix.reshape(-1)[at] = values
        matrix.flags.writeable = False
        return matrix
    if file.metadata.num_rows > MOST_KEPT:
        raise InvalidInputError(f"a matrix that is extended may have {MOST_KEPT:,} stored entries")
    numbers, value = (np.concatenate(parts) for parts in zip(*_numbered(file, shape), strict=True))
    row, column = np.divmod(numbers, outputs)
    epsilon, report = _members(extension, "extension", {"epsilon": float, "report": int}).values()
    whole = column == report
    if not np.array_equal(row[whole], np.arange(len(inputs))):
        raise InvalidInputError("the output extension.report must have an entry for each input")
    order = np.lexsort((row, column))
    order = order[~whole[order]]
    return ExtendedMatrix(
        inputs, outputs, epsilon, (row[order], column[order], value[order]), report, value[whole]
    )


def _entries(matrix: FloatArray | ExtendedMatrix) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Yield inputs, outputs and probabilities of the stored entries, in order."""
    if isinstance(matrix, ExtendedMatrix):
        inputs = np.concatenate([matrix.input, np.arange(len(matrix.column))])
        outputs = np.concatenate([matrix.output, np.full(len(matrix.column), matrix.report)])
        order = np.lexsort((outputs, inputs))
        yield inputs[order], outputs[order], np.concatenate([matrix.value, matrix.column])[order]
        return
    for part, rows in parts_of(matrix):
        inputs, outputs = np.nonzero(rows)
        yield inputs + part.start, outputs, rows[inputs, outputs]


def _numbered(file: Any, shape: tuple[int, int]) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the numbers of the entries of a file, which are in order, each at most once, and their values."""
    before = -1
    if not shape[0] <= file.metadata.num_rows <= math.prod(shape):
        raise InvalidInputError("it must have at least one entry for each input, and at most one for each pair")
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    if any(group.column(at).compression != "UNCOMPRESSED" for group in groups for at in range(3)):
        raise InvalidInputError("it must not be compressed")
    for batch in file.iter_batches(GROUP):
        batch.validate(full=True)
        if any(column.null_count for column in batch.columns):
            raise InvalidInputError("no value may be missing")
        inputs, outputs, values = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        numbers: IntArray = inputs.astype(np.int64) * shape[1] + outputs
        in_range = (inputs >= 0) & (inputs < shape[0]) & (outputs >= 0) & (outputs < shape[1])
        if not in_range.all() or not (np.diff(numbers, prepend=before) > 0).all():
            raise InvalidInputError("its entries must be those of sites, in order, each once")
        yield numbers, values
        before = int(numbers[-1]) if len(numbers) else before


def _read_json(path: Path) -> tuple[Sites, Sites, FloatArray | ExtendedMatrix, dict[str, Any]]:
    most = 11 * MOST_ON_DEVICE + 2 * MOST_BYTES
    with path.open("rb") as file:
        about = as_object(file.read(most + 1), most)
    inputs, outputs = _ends(about, NAMES | {"matrix", "reports"})
    if about["projection"] is None or not about["interpolated"]:
        raise InvalidInputError("its mechanism must be interpolated and projected")
    # Only a device uses them: here they are computed again.
    reports, text = about["reports"], about["matrix"]
    if not isinstance(reports, list) or len(reports) != len(outputs) or not isinstance(text, str):
        raise InvalidInputError("its reports must be one for each output, and its matrix text")
    as_lonlat([_numbers(place, "reports", 2) for place in reports], "reports")
    try:
        entries = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        entries = b""
    if len(entries) != 8 * len(inputs) * len(outputs):
        raise InvalidInputError("its matrix must be the doubles of all entries in base 64")
    return inputs, outputs, np.frombuffer(entries, "<f8").reshape(len(inputs), len(outputs)), about


def _ends(about: dict[str, Any], names: frozenset[str]) -> tuple[Sites, Sites]:
    """Return the inputs and the outputs of a file that has these members."""
    if about.keys() != names or about["format"] != FORMAT or not isinstance(about["interpolated"], bool):
        raise InvalidInputError(f"its metadata must be that of {FORMAT!r}")
    inputs = _sites(about["inputs"], "inputs")
    outputs = inputs if about["outputs"] is None else _sites(about["outputs"], "outputs")
    _check_size(inputs, outputs)
    return inputs, outputs


def _sites(value: object, name: str) -> Grid | Places:
    if not isinstance(value, list) or not value:
        raise InvalidInputError(f"{name} must be five numbers of a grid, or a list of places")
    if isinstance(value[0], list):
        width = len(value[0])
        return Places([_numbers(place, name, width) for place in value])
    x, y, cell, columns, rows = _numbers(value, name, 5)
    if columns != int(columns) or rows != int(rows) or max(columns, rows) > MOST_ENTRIES:
        raise InvalidInputError(f"{name} must have whole numbers of columns and rows, at most {MOST_ENTRIES:,}")
    return Grid(x, y, cell=cell, columns=int(columns), rows=int(rows))


def _members(value: object, name: str, kinds: dict[str, type]) -> dict[str, Any]:
    """Return the members of an object, which must have these types; null stands for an infinite number."""
    if not isinstance(value, dict) or value.keys() != kinds.keys():
        raise InvalidInputError(f"{name} must have {', '.join(kinds)}")
    return {
        member: math.inf
        if value[member] is None and kind is float
        else _checked(value[member], f"{name}.{member}", kind)
        for member, kind in kinds.items()
    }


def _numbers(value: object, name: str, count: int) -> list[float]:
    if not isinstance(value, list) or len(value) != count:
        raise InvalidInputError(f"{name} must be {count} numbers")
    return [_checked(number, name) for number in value]


def _checked(value: Any, name: str, kind: type = float) -> Any:
    """Return a value of a type."""
    types, valid, rule = RULES[kind]
    if type(value) not in types or not valid(value):
        raise InvalidInputError(f"{name} must be {rule}")
    return kind(value)
