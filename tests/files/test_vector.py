import json
import struct
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geoind import EACH_ROW, obfuscate_file
from geoind.errors import InvalidInputError
from geoind.files.vector import open_vector
from geoind.space.vector_files import DRIVERS
from geoind.tables.places import declared_crs, geometry_columns

PROPERTIES: list[dict[str, Any]] = [
    {
        "day": "2024-05-01",
        "at": "2024-05-01T08:00:00+02:00",
        "n": 1,
        "x": 1.5,
        "ok": True,
        "o": {"a": [1, "é"]},
        "l": [1],
    },
    {
        "day": "2024/05/02",
        "at": "2024-05-01T08:00:00Z",
        "n": 2**53 + 1,
        "x": 2,
        "ok": False,
        "o": None,
        "l": ["x"],
    },
    {"day": "", "at": None, "n": None, "x": None, "ok": None, "o": {"a": None}, "late": "007"},
]


def feature(properties: Any, geometry: Any = None, **others: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": geometry, **others}


def point(*coordinates: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": coordinates}


def collection(*features: Any, **others: Any) -> str:
    return json.dumps({"type": "FeatureCollection", **others, "features": features})


def table(path: Path, columns: list[str] | None = None, **reading: Any) -> pa.Table:
    source = open_vector(path, **reading)
    parts = list(source.rows(columns))
    numbers = [number for part in parts for number in part.numbers.tolist()]
    assert numbers == list(range(1, len(numbers) + 1))
    return pa.Table.from_batches([part.batch for part in parts], parts[0].batch.schema if parts else source.schema)


def values(found: pa.Table) -> list[dict[str, Any]]:
    """Return the attributes of all rows; JSON is decoded."""
    rows: list[dict[str, Any]] = found.drop_columns(geometry_columns(found.schema)).to_pylist()
    for field in found.schema:
        if field.metadata == {b"geoind:json": b"1"}:
            for row in rows:
                row[field.name] = row[field.name] and json.loads(row[field.name])
    return rows


@pytest.mark.parametrize("suffix", ["geojson", "geojsonl", "separated.geojsonseq", "pretty.geojsonseq"])
def test_the_properties_of_geojson_keep_their_values(tmp_path: Path, suffix: str) -> None:
    features = [feature(properties, point(2, 48)) for properties in PROPERTIES]
    texts = {
        "geojsonl": "\ufeff\n" + "\r\n\n".join(map(json.dumps, features)) + "\n",
        "separated.geojsonseq": "".join(f"\x1e{json.dumps(one)}\n" for one in features),
        "pretty.geojsonseq": "".join(f"\x1e{json.dumps(one, indent=1)}\n" for one in features),
    }
    path = tmp_path / f"in.{suffix}"
    path.write_text(texts.get(suffix, collection(*features)))
    names = ["day", "at", "n", "x", "ok", "o", "l", "late"]
    assert values(table(path)) == [{name: one.get(name) for name in names} for one in PROPERTIES]


def test_foreign_members_boxes_and_numbers_of_features_are_not_columns(tmp_path: Path) -> None:
    one = feature({"a": 1}, point(2, 48), id=7, bbox=[2, 48, 2, 48], secret="S", title="T")
    (tmp_path / "in.geojson").write_text(collection(one, bbox=[1, 1, 2, 2], secret="S", name="a name"))
    assert table(tmp_path / "in.geojson").schema.names == ["a", "geometry"]


def test_a_geometry_is_wkb_with_its_crs(tmp_path: Path) -> None:
    line = {"type": "LineString", "coordinates": [[1, 2, 3], [4, 5, 6]]}
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::2154"}}
    shapes = [point(2.5, 48.5), point(2.5, 48.5, 324.5), line, None, {"type": "Point", "coordinates": []}]
    path = tmp_path / "in.geojson"
    for more, expected in (({}, "EPSG:4326"), ({"crs": crs}, "EPSG:2154")):
        path.write_text(collection(*(feature({"geometry": "text"}, shape) for shape in shapes), **more))
        found = table(path)
        assert geometry_columns(found.schema) == ["geometry_"]
        assert declared_crs(found.schema, "geometry_") == expected
        first, second, third, fourth, fifth = found["geometry_"].to_pylist()
        assert first == shapely.to_wkb(shapely.Point(2.5, 48.5))
        assert shapely.from_wkb(second).z == 324.5
        assert shapely.from_wkb(third).geom_type == "LineString"
        assert fourth is None
        assert fifth is None or shapely.from_wkb(fifth).is_empty
        assert found["geometry"].to_pylist() == ["text"] * 5


@pytest.mark.parametrize("text", [json.dumps(feature({}, point(2, 48))), json.dumps(point(2, 48))])
def test_a_single_feature_or_geometry_is_a_row(tmp_path: Path, text: str) -> None:
    (tmp_path / "in.geojson").write_text(text)
    assert table(tmp_path / "in.geojson")["geometry"].to_pylist() == [shapely.to_wkb(shapely.Point(2, 48))]


def test_only_the_columns_that_are_asked_for_travel_in_the_order_of_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "in.geojson"
    path.write_text(collection(*(feature({"a": i, "A": -i, "b": {"c": i}}, point(i, i)) for i in range(3))))
    assert table(path, ["b", "A"]).to_pylist() == [{"A": -i, "b": f'{{ "c": {i} }}'} for i in range(3)]
    wkb = [shapely.to_wkb(shapely.Point(i, i)) for i in range(3)]
    assert table(path, ["geometry", "a"]).to_pylist() == [{"a": i, "geometry": wkb[i]} for i in range(3)]
    assert table(path, ["geometry"]).to_pylist() == [{"geometry": shape} for shape in wkb]
    assert table(path, []).num_columns == 0


def homes(count: int = 5, crs: int = 4326) -> geopandas.GeoDataFrame:
    frame = {"name": [f"é {i}" for i in range(count)], "value": np.arange(count)}
    points = geopandas.points_from_xy(np.linspace(2, 3, count), np.linspace(48, 49, count), np.ones(count))
    return geopandas.GeoDataFrame(frame, geometry=points, crs=4326).to_crs(crs)


@pytest.mark.parametrize("suffix", ["gpkg", "fgb", "shp", "kml", "gml", "sqlite", "mif"])
def test_every_format_of_gdal_gives_its_attributes_and_points(tmp_path: Path, suffix: str) -> None:
    truth = homes()
    truth.to_file(tmp_path / f"in.{suffix}", driver=DRIVERS[f".{suffix}"])
    found = table(tmp_path / f"in.{suffix}")
    geometry = found.schema.names[-1]
    assert geometry_columns(found.schema) == [geometry]
    assert declared_crs(found.schema, geometry) == "EPSG:4326"
    order = np.argsort(found["value"].to_pylist())
    shapes = shapely.from_wkb(found[geometry].to_numpy())[order]
    assert np.allclose(shapely.get_coordinates(shapes), shapely.get_coordinates(truth.geometry))
    names = found["Name" if suffix == "kml" else "name"].to_pylist()
    assert [names[at] for at in order] == truth["name"].tolist()


@pytest.mark.parametrize("suffix", ["gpkg", "parquet"])
def test_no_height_of_a_point_leaves(tmp_path: Path, suffix: str) -> None:
    homes().to_file(tmp_path / "in.gpkg")
    target = tmp_path / f"out.{suffix}"
    obfuscate_file(tmp_path / "in.gpkg", target, person=EACH_ROW, epsilon=0.01, order="keep")
    read = geopandas.read_parquet if suffix == "parquet" else geopandas.read_file
    reports = read(target).geometry
    assert len(reports) == len(homes())
    assert not shapely.has_z(reports.to_numpy()).any()


@pytest.mark.parametrize("kind", [1001, 2001, 3001, 0x8000_0001])
def test_no_height_or_measure_in_wkb_leaves(tmp_path: Path, kind: int) -> None:
    secret = struct.pack("<d", 123456.789)
    point = struct.pack("<BIdd", 1, kind, 2.2945, 48.8584) + secret * (2 if kind == 3001 else 1)
    column = {"encoding": "WKB", "geometry_types": []}
    notes = {"geo": json.dumps({"version": "1.1.0", "primary_column": "at", "columns": {"at": column}})}
    pq.write_table(
        pa.table({"at": pa.array([point], pa.binary())}).replace_schema_metadata(notes), tmp_path / "in.parquet"
    )
    obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.parquet", person=EACH_ROW, epsilon=0.01)
    [report] = pq.read_table(tmp_path / "out.parquet")["at"].to_pylist()
    assert len(report) == 21
    assert secret not in (tmp_path / "out.parquet").read_bytes()


def test_one_of_several_layers_must_be_chosen(tmp_path: Path) -> None:
    homes(3).to_file(tmp_path / "in.gpkg", layer="homes")
    homes(4, 2154).to_file(tmp_path / "in.gpkg", layer="offices")
    for chosen in (None, "none"):
        with pytest.raises(InvalidInputError, match="`layer=` must be one of 'homes', 'offices'"):
            table(tmp_path / "in.gpkg", layer=chosen)
    found = table(tmp_path / "in.gpkg", layer="offices")
    assert found.num_rows == 4
    assert declared_crs(found.schema, "geom") == "EPSG:2154"


def test_a_layer_without_a_crs_says_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="crs"):
        homes().set_crs(None, allow_override=True).to_file(tmp_path / "in.fgb")
    found = table(tmp_path / "in.fgb")
    assert declared_crs(found.schema, found.schema.names[-1]) is None


@pytest.mark.parametrize(
    "text", ["", "[", '{"type": "FeatureCollection", "features": [{"type": 12.345', "lat\n12.345"]
)
@pytest.mark.parametrize("suffix", ["geojson", "geojsonl", "gpkg"])
def test_a_file_that_is_something_else_is_refused_without_its_content(
    tmp_path: Path, suffix: str, text: str
) -> None:
    (tmp_path / f"in.{suffix}").write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        table(tmp_path / f"in.{suffix}")
    assert "12.345" not in str(caught.value)
