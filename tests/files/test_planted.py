"""Nothing but the reports and the kept columns is in the output, whatever format it comes from.

Files of every format have a secret in every other column, member, entry of metadata, name and comment. All bytes
of the output are searched for it, and for the true coordinates.
"""

import gzip
import io
import json
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pyproj
import pytest
import shapely

from geoind import EACH_ROW, obfuscate_file
from geoind.arrays import FloatArray
from geoind.files import Reading
from geoind.tables import EACH_FILE

SECRET = "qzsecretqz"
NUMBER = 7391528.4635
"""A secret that is a number."""
ROWS = 40

Written = Callable[[Path, FloatArray, list[str]], None]


def places(seed: int = 0) -> FloatArray:
    """Return true places whose sixth decimals are not 0, so that no report is equal to one."""
    millionths = (
        np.random.default_rng(seed).normal([2.35e6, 48.86e6], [8e4, 5e4], (ROWS, 2)).round() // 10 * 10 + 7
    )
    return np.asarray(millionths / 1e6)


def names_of(seed: int = 0) -> list[str]:
    return [f"kept{number}" for number in np.random.default_rng(seed).permutation(ROWS)]


def other_columns() -> dict[str, list[Any]]:
    """Return columns that do not leave: their names and their values are secrets."""
    return {
        f"{SECRET} text": [f"{SECRET} {row}" for row in range(ROWS)],
        f"{SECRET} number": [NUMBER] * ROWS,
        "station": [SECRET.upper()] * ROWS,
    }


def table(truth: FloatArray, names: list[str]) -> pa.Table:
    others = {name: pa.array(values) for name, values in other_columns().items()}
    return pa.table({"name": names, **others, "lon": truth[:, 0], "lat": truth[:, 1]})


def write_csv(path: Path, truth: FloatArray, names: list[str]) -> None:
    path.write_text(delimited(truth, names))


def write_tsv(path: Path, truth: FloatArray, names: list[str]) -> None:
    path.write_text(delimited(truth, names, "\t"))


def delimited(truth: FloatArray, names: list[str], delimiter: str = ",") -> str:
    rows = table(truth, names).to_pylist()
    lines = [list(rows[0]), *([f"{value}" for value in row.values()] for row in rows)]
    return "".join(delimiter.join(line) + "\n" for line in lines)


def write_gzip(path: Path, truth: FloatArray, names: list[str]) -> None:
    with path.open("wb") as raw, gzip.GzipFile(SECRET, "wb", fileobj=raw) as file:
        file.write(delimited(truth, names).encode())


def write_zip(path: Path, truth: FloatArray, names: list[str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = SECRET.encode()
        member = zipfile.ZipInfo(f"{SECRET}.csv")
        member.comment = SECRET.encode()
        archive.writestr(member, delimited(truth, names))


def write_zstd(path: Path, truth: FloatArray, names: list[str]) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(delimited(truth, names).encode())


def write_ndjson(path: Path, truth: FloatArray, names: list[str]) -> None:
    rows = table(truth, names).to_pylist()
    for row in rows:
        row["nested"] = {"kept": 1, SECRET: [SECRET], "deep": {"x": SECRET, "y": NUMBER}}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def features(truth: FloatArray, names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "type": "Feature",
            "id": f"{SECRET}{row}",
            "bbox": [lon, lat, lon, lat],
            SECRET: {"at": [lon, lat]},
            "properties": {"name": name, "station": SECRET, SECRET: NUMBER, "nested": {"x": SECRET}},
            "geometry": {"type": "Point", "coordinates": [lon, lat, NUMBER], SECRET: SECRET},
        }
        for row, (name, (lon, lat)) in enumerate(zip(names, truth.tolist(), strict=True))
    ]


def write_geojson(path: Path, truth: FloatArray, names: list[str]) -> None:
    box = [*truth.min(axis=0), *truth.max(axis=0)]
    about = {"type": "FeatureCollection", "name": SECRET, "bbox": box, "author": {SECRET: box}, "title": SECRET}
    path.write_text(json.dumps({**about, "features": features(truth, names)}))


def write_geojsonl(path: Path, truth: FloatArray, names: list[str]) -> None:
    path.write_text("".join(json.dumps(feature) + "\n" for feature in features(truth, names)))


def write_gpx(path: Path, truth: FloatArray, names: list[str]) -> None:
    more = f"<desc>{SECRET}</desc><sym>{SECRET}</sym><extensions><s:x>{SECRET} {NUMBER}</s:x></extensions>"
    tracks = "".join(
        f'<trk><name>{name}</name>{more}<trkseg><trkpt lat="{lat}" lon="{lon}"><ele>{NUMBER}</ele>'
        f"<time>2024-05-01T08:{row:02}:00Z</time>{more}</trkpt></trkseg></trk>"
        for row, (name, (lon, lat)) in enumerate(zip(names, truth.tolist(), strict=True))
    )
    low, high = truth.min(axis=0), truth.max(axis=0)
    bounds = f'<bounds minlat="{low[1]}" minlon="{low[0]}" maxlat="{high[1]}" maxlon="{high[0]}"/>'
    path.write_text(
        f'<?xml version="1.0"?><!-- {SECRET} --><gpx version="1.1" creator="{SECRET}" xmlns:s="http://{SECRET}" '
        f'xmlns="http://www.topografix.com/GPX/1/1"><metadata><name>{SECRET}</name><author><name>{SECRET}</name>'
        f"</author>{bounds}</metadata>{tracks}<extensions><s:y>{SECRET}</s:y></extensions></gpx>"
    )


def write_parquet(path: Path, truth: FloatArray, names: list[str]) -> None:
    given = table(truth, names)
    # A dictionary with an entry that no row has, and notes in the field of the kept column.
    codes = pa.DictionaryArray.from_arrays(pa.array(range(1, ROWS + 1)), pa.array([SECRET, *names]))
    given = given.set_column(0, pa.field("name", codes.type, metadata={SECRET: SECRET}), codes)
    notes = {
        "pandas": json.dumps({"columns": [SECRET]}),
        "author": SECRET,
        SECRET: str(NUMBER),
        "geo_note": SECRET,
    }
    pq.write_table(given.replace_schema_metadata(notes), path)


def frame(truth: FloatArray, names: list[str]) -> geopandas.GeoDataFrame:
    columns = {"name": names, "station": [SECRET] * ROWS, SECRET: [NUMBER] * ROWS}
    return geopandas.GeoDataFrame(columns, geometry=geopandas.points_from_xy(*truth.T), crs=4326)


def write_geoparquet(path: Path, truth: FloatArray, names: list[str]) -> None:
    crs = {**pyproj.CRS("OGC:CRS84").to_json_dict(), "remarks": SECRET, "scope": SECRET, "name": SECRET}
    crs["datum_ensemble"] = {**crs["datum_ensemble"], "remarks": SECRET}
    box = [*truth.min(axis=0), *truth.max(axis=0)]
    about = {"encoding": "WKB", "geometry_types": ["Point"], "crs": crs, "bbox": box, SECRET: SECRET}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about}, "creator": SECRET}
    given = table(truth, names).drop_columns(["lon", "lat"])
    shapes = pa.array(shapely.to_wkb(shapely.points(truth)))
    given = given.append_column(pa.field("geometry", pa.binary(), metadata={SECRET: SECRET}), shapes)
    pq.write_table(given.replace_schema_metadata({"geo": json.dumps(geo), "attrs": SECRET}), path)


def write_gpkg(path: Path, truth: FloatArray, names: list[str]) -> None:
    frame(truth, names).to_file(path, layer=f"{SECRET}_layer", engine="pyogrio")
    with sqlite3.connect(path) as file:
        file.execute("UPDATE gpkg_contents SET description = ?", (SECRET,))
        file.execute(f"CREATE TABLE {SECRET} (x TEXT)")
        file.execute(f"INSERT INTO {SECRET} VALUES (?)", (SECRET,))
    file.close()


def write_fgb(path: Path, truth: FloatArray, names: list[str]) -> None:
    # An index would sort the features by place.
    options = {"TITLE": SECRET, "DESCRIPTION": SECRET, "SPATIAL_INDEX": "NO"}
    pyogrio.write_dataframe(frame(truth, names), path, driver="FlatGeobuf", layer=SECRET, **options)


def write_shapefile(path: Path, truth: FloatArray, names: list[str]) -> None:
    short = frame(truth, names).rename(columns={SECRET: SECRET[:10]})
    short.to_file(path, engine="pyogrio")
    path.with_suffix(".shp.xml").write_text(SECRET)


def write_kml(path: Path, truth: FloatArray, names: list[str]) -> None:
    more = (
        f"<description>{SECRET}</description><ExtendedData><Data name='{SECRET}'><value>{NUMBER}</value></Data>"
        "</ExtendedData>"
    )
    marks = "".join(
        f"<Placemark id='{SECRET}{row}'><name>{name}</name>{more}<Point><coordinates>{lon},{lat},7</coordinates>"
        "</Point></Placemark>"
        for row, (name, (lon, lat)) in enumerate(zip(names, truth.tolist(), strict=True))
    )
    path.write_text(
        f"<?xml version='1.0'?><!-- {SECRET} --><kml xmlns='http://www.opengis.net/kml/2.2'><Document>"
        f"<name>{SECRET}</name><author>{SECRET}</author><Folder><name>{SECRET}</name>{marks}</Folder></Document></kml>"
    )


def write_gml(path: Path, truth: FloatArray, names: list[str]) -> None:
    frame(truth, names).to_file(path, driver="GML", engine="pyogrio", layer=SECRET)


def write_sqlite(path: Path, truth: FloatArray, names: list[str]) -> None:
    frame(truth, names).to_file(path, driver="SQLite", engine="pyogrio", layer=SECRET)


def write_plt(path: Path, truth: FloatArray, names: list[str]) -> None:  # noqa: ARG001
    head = f"Geolife trajectory\n{SECRET}\nAltitude is in Feet\nReserved 3\n0,2,255,{SECRET}\n0\n"
    rows = [f"{lat},{lon},0,{NUMBER},39744.12,2008-10-23,02:{row:02}:04" for row, (lon, lat) in enumerate(truth)]
    path.write_text(head + "\n".join(rows) + "\n")


def write_google(path: Path, truth: FloatArray, names: list[str]) -> None:  # noqa: ARG001
    records = [
        {
            "latitudeE7": round(lat * 1e7),
            "longitudeE7": round(lon * 1e7),
            "timestamp": f"2024-05-01T08:{row:02}:00Z",
            "deviceTag": SECRET,
            "activity": [{"activity": [{"type": SECRET}]}],
            "altitude": NUMBER,
        }
        for row, (lon, lat) in enumerate(truth.tolist())
    ]
    path.write_text(json.dumps({"locations": records, "author": SECRET}))


FORMATS: dict[str, tuple[Written, tuple[str, ...]]] = {
    "in.csv": (write_csv, ("out.csv", "out.parquet", "out.zip")),
    "in.csv.gz": (write_gzip, ("out.csv.gz",)),
    "in.csv.zst": (write_zstd, ("out.csv.zst",)),
    "in.csv.zip": (write_zip, ("out.csv.zip",)),
    "in.tsv": (write_tsv, ("out.tsv", "out.gpx")),
    "in.ndjson": (write_ndjson, ("out.ndjson", "out.csv")),
    "in.geojson": (write_geojson, ("out.geojson", "out.gpkg", "out.ndjson")),
    "in.geojsonl": (write_geojsonl, ("out.geojsonl",)),
    "in.gpx": (write_gpx, ("out.gpx", "out.geojson")),
    "in.parquet": (write_parquet, ("out.parquet", "out.tsv")),
    "in.geo.parquet": (write_geoparquet, ("out.parquet", "out.fgb")),
    "in.gpkg": (write_gpkg, ("out.gpkg", "out.parquet")),
    "in.fgb": (write_fgb, ("out.fgb",)),
    "in.shp": (write_shapefile, ("out.shp",)),
    "in.kml": (write_kml, ("out.csv",)),
    "in.gml": (write_gml, ("out.geojson",)),
    "in.sqlite": (write_sqlite, ("out.gpkg",)),
    "in.plt": (write_plt, ("out.csv",)),
    "in.json": (write_google, ("out.csv",)),
}
ONLY_READ = ("in.kml", "in.gml", "in.sqlite")
CASES = [(source, target) for source, (_, targets) in FORMATS.items() for target in targets]


def texts_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes of all files of a folder, and what they are when they are decompressed, and their names."""
    for path in folder.rglob("*"):
        yield "a name", path.name.encode()
        if not path.is_file():
            continue
        data = path.read_bytes()
        yield path.name, data
        if data.startswith(b"\x1f\x8b"):
            yield f"{path.name}, gunzipped", gzip.decompress(data)
        elif data.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for name in archive.namelist():
                    yield f"{path.name}, a name in it", name.encode()
                    yield f"{path.name}, unzipped", archive.read(name)
        elif data.startswith(b"\x28\xb5\x2f\xfd"):
            yield f"{path.name}, decompressed", pa.CompressedInputStream(io.BytesIO(data), "zstd").read()
        elif data.startswith(b"PAR1"):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, (read := pq.read_table(path)).schema) as writer:
                writer.write_table(read)
            yield f"{path.name}, as Arrow", sink.getvalue().to_pybytes()


def secrets(truth: FloatArray) -> dict[str, bytes]:
    """Return what must not be in any output."""
    found = {"secret": SECRET.encode(), "secret in UTF-16": SECRET.encode("utf-16-le")}
    found |= {
        "number": b"7391528",
        "number's bytes": struct.pack("<d", NUMBER),
        "big-endian": struct.pack(">d", NUMBER),
    }
    for value in truth.ravel().tolist():
        found |= {f"{value} as text": f"{value:.6f}".encode(), f"{value} in bytes": struct.pack("<d", value)}
        found |= {
            f"{value}, big-endian": struct.pack(">d", value),
            f"{value}, E7": f"{round(value * 1e7)}".encode(),
        }
    return found


def leaks(folder: Path, truth: FloatArray) -> list[tuple[str, str]]:
    hidden = secrets(truth)
    return [
        (where, what)
        for where, data in texts_in(folder)
        for what, secret in hidden.items()
        if secret.lower() in data.lower()
    ]


@pytest.mark.parametrize(("source", "target"), CASES)
def test_no_secret_of_a_file_is_in_its_reports(tmp_path: Path, source: str, target: str) -> None:
    truth, names = places(), names_of()
    given, out = tmp_path / "given", tmp_path / "made"
    given.mkdir()
    out.mkdir()
    FORMATS[source][0](given / source, truth, names)
    assert leaks(given, truth), "the check must find what is planted"
    keep = {"in.plt": [], "in.json": [], "in.kml": ["Name"]}.get(source, ["name"])
    obfuscate_file(given / source, out / target, person=EACH_ROW, keep=keep, epsilon=0.005)
    assert leaks(out, truth) == []
    everything = b"".join(data for _, data in texts_in(out))
    assert not keep or all(name.encode() in everything for name in names)


def test_no_secret_of_a_folder_is_in_its_reports(tmp_path: Path) -> None:
    given, out = tmp_path / "given", tmp_path / "made"
    given.mkdir()
    every = []
    written = [(name, write) for name, (write, _) in FORMATS.items() if name not in ONLY_READ]
    for number, (name, write) in enumerate(written):
        path = given / name.replace("in.", f"in{number}.")
        truth = places(number)
        write(path, truth, names_of(number))
        every.append(truth)
    obfuscate_file([given], out, person=EACH_FILE, keep=["name"], epsilon=0.0001)
    assert leaks(out, np.concatenate(every)) == []
    assert len(list(out.glob("in*.geoind.json"))) > len(written) / 2


@pytest.mark.parametrize("source", ["in.csv", "in.ndjson", "in.parquet"])
def test_persons_and_identities_do_not_leave_unless_they_are_kept(tmp_path: Path, source: str) -> None:
    truth, names = places(), [f"{SECRET}{row}" for row in range(ROWS)]
    given, out = tmp_path / "given", tmp_path / "made"
    given.mkdir()
    out.mkdir()
    write = FORMATS[source][0]
    write(given / source, truth, names)
    obfuscate_file(given / source, out / "a.csv", person="name", id_column="name", epsilon=0.005)
    assert leaks(out, truth) == []


def test_rejects_hold_the_secrets_and_the_reports_do_not(tmp_path: Path) -> None:
    truth, names = places(), names_of()
    given, out = tmp_path / "in.csv", tmp_path / "made"
    out.mkdir()
    text = delimited(truth, names)
    given.write_text(f"{text}{names[0]},{SECRET},1,x,2,91\n{SECRET},{SECRET}\n")
    summary = obfuscate_file(
        given, out / "a.csv", person=EACH_ROW, keep=["name"], epsilon=0.005, rejects=tmp_path / "bad"
    )
    assert summary.rejected == 2
    assert leaks(out, truth) == []


def test_only_the_layer_that_is_asked_for_is_read_and_no_layer_gives_its_name(tmp_path: Path) -> None:
    truth, names = places(), names_of()
    path, out = tmp_path / "in.gpkg", tmp_path / "made"
    out.mkdir()
    frame(truth, names).to_file(path, layer="public", engine="pyogrio")
    frame(truth, [SECRET] * ROWS).to_file(path, layer=SECRET, engine="pyogrio")
    options: dict[str, Any] = {"person": EACH_ROW, "keep": ["name"], "epsilon": 0.005}
    obfuscate_file(path, out / "out.gpkg", reading=Reading(layer="public"), **options)
    assert leaks(out, truth) == []
    assert pyogrio.list_layers(out / "out.gpkg")[:, 0].tolist() == ["out"]
