import hashlib
import http.server
import json
import os
import re
import shutil
import sqlite3
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import geopandas
import numpy as np
import pytest

from geoind import obfuscate_file
from geoind.errors import InvalidInputError
from geoind.maps.basemap import helsinki_file, read_basemap
from geoind.queries.points_of_interest import PointsOfInterest
from geoind.space.vector_files import DRIVERS, VectorFile, driver_of, read_vector_file

VRT = """<OGRVRTDataSource><OGRVRTLayer name="secret"><SrcDataSource>{path}</SrcDataSource>
<GeometryType>wkbPoint</GeometryType><LayerSRS>EPSG:4326</LayerSRS>
<GeometryField encoding="PointFromColumns" x="lon" y="lat"/></OGRVRTLayer></OGRVRTDataSource>"""
WFS = "<OGRWFSDataSource><URL>{url}</URL></OGRWFSDataSource>"
OAPIF = "<OGRWFS3DataSource><URL>{url}</URL></OGRWFS3DataSource>"
PIPELINE = '{{"type": "gdal_streamed_alg", "command_line": "gdal vector pipeline ! read {path}"}}'
KML = """<kml xmlns="http://www.opengis.net/kml/2.2"><!-- {path} --><Document><NetworkLink><Link><href>{url}</href>
</Link></NetworkLink><Folder><name>homes</name><Placemark><styleUrl>{url}#s</styleUrl><name>Ana</name>
<Point><coordinates>2,48</coordinates></Point></Placemark></Folder></Document></kml>"""


def homes(count: int = 2) -> geopandas.GeoDataFrame:
    lon = np.linspace(2, 3, count)
    points = geopandas.points_from_xy(lon, np.random.default_rng(0).uniform(47, 48, count))
    return geopandas.GeoDataFrame({"name": [f"home {i}" for i in range(count)]}, geometry=points, crs=4326)


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """Return the address of a server on this machine, and what is asked of it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}/asked", asked
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.mark.parametrize("suffix", ["gpkg", "fgb", "shp", "kml", "gml", "sqlite", "mif", "geojson", "json"])
def test_an_ordinary_file_is_read_whole(tmp_path: Path, suffix: str) -> None:
    truth = homes(1000)
    truth.to_file(tmp_path / f"in.{suffix}", driver=DRIVERS[f".{suffix}"])
    before = sorted(tmp_path.iterdir())
    found = read_vector_file(tmp_path / f"in.{suffix}")
    assert sorted(tmp_path.iterdir()) == before
    assert set(found["Name" if suffix == "kml" else "name"]) == set(truth["name"])
    assert found.crs == truth.crs
    assert np.allclose(np.sort(found.geometry.x), truth.geometry.x, atol=1e-6)


def test_a_shapefile_in_an_archive_is_read_if_it_is_alone(tmp_path: Path) -> None:
    homes().to_file(tmp_path / "in.shp")
    parts = sorted(tmp_path.glob("in.*"))
    for name, more in (
        ("in.zip", []),
        ("two.zip", ["other.shp"]),
        ("up.zip", ["../in.qix"]),
        ("x.zip", ["x.vrt"]),
    ):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for part in parts:
                archive.write(part, f"folder/{part.name}")
            for other in more:
                archive.writestr(other, b"")
    assert len(read_vector_file(tmp_path / "in.zip")) == 2
    for name in ("two.zip", "up.zip", "x.zip"):
        with pytest.raises(InvalidInputError, match="one shapefile and its parts alone"):
            read_vector_file(tmp_path / name)


@pytest.mark.parametrize("document", [VRT, WFS, OAPIF, PIPELINE, KML])
@pytest.mark.parametrize("suffix", [*DRIVERS, ".vrt", ".xml", ".gpx", ".parquet"])
def test_a_file_neither_asks_a_server_nor_reads_another_file(
    tmp_path: Path, server: tuple[str, list[str]], document: str, suffix: str
) -> None:
    url, asked = server
    (tmp_path / "secret.csv").write_text("name,lat,lon\nSECRET,48,2\n")
    text = document.format(path=tmp_path / "secret.csv", url=url)
    file = tmp_path / f"in{suffix}"
    file.write_text(text)
    if (document, suffix) == (KML, ".kml"):
        with VectorFile(file) as layers:
            assert layers.frame("homes")["Name"].tolist() == ["Ana"]
    else:
        with pytest.raises(InvalidInputError):
            read_vector_file(file)
        for read in (PointsOfInterest.read, read_basemap):
            with pytest.raises(InvalidInputError):
                read(file)
        with pytest.raises(InvalidInputError):
            obfuscate_file(file, tmp_path / f"out{suffix}", epsilon=0.01)
    assert asked == []


@pytest.mark.parametrize("document", [VRT, WFS, OAPIF, PIPELINE])
def test_an_instruction_inside_a_document_of_the_right_format_is_data(
    tmp_path: Path, server: tuple[str, list[str]], document: str
) -> None:
    url, asked = server
    (tmp_path / "secret.csv").write_text("name,lat,lon\nSECRET,48,2\n")
    text = document.format(path=tmp_path / "secret.csv", url=url)
    link = {"type": "link", "properties": {"href": url, "type": "proj4"}}
    (tmp_path / "in.geojson").write_text(json.dumps({"note": text, "crs": link} | json.loads(homes().to_json())))
    assert read_vector_file(tmp_path / "in.geojson")["name"].tolist() == ["home 0", "home 1"]
    assert asked == []


@pytest.mark.parametrize(
    "name",
    [
        "/vsicurl/{url}.gpkg",
        "/vsizip/{folder}/in.zip/in.shp",
        "{url}.gpkg",
        "WFS:{url}.gpkg",
        "PG:dbname=x.gpkg",
        "zip://{folder}/in.gpkg",
        "{folder}/a!in.gpkg",
        "{folder}/nul\0.gpkg",
        "{folder}",
    ],
)
def test_a_name_that_is_not_a_local_file_is_refused(
    tmp_path: Path, server: tuple[str, list[str]], name: str
) -> None:
    url, asked = server
    homes().to_file(tmp_path / "in.gpkg")
    shutil.copy(tmp_path / "in.gpkg", tmp_path / "a!in.gpkg")
    with pytest.raises(InvalidInputError):
        read_vector_file(name.format(url=url, folder=tmp_path))
    assert asked == []


@pytest.mark.parametrize("name", ["-in.gpkg", "[*]?{x} %20#é.gpkg", "PG:.gpkg", "$(x).gpkg"])
def test_special_characters_in_the_name_of_a_file_are_part_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    homes().to_file(tmp_path / "in.gpkg")
    shutil.copy(tmp_path / "in.gpkg", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert len(read_vector_file(name)) == 2


CONTENTS = (
    "insert into gpkg_contents(table_name, data_type, identifier, srs_id) values ('{0}', 'features', '{0}', 4326)"
)


@pytest.mark.parametrize(
    "statement",
    [
        "create view v as select fid, geom, ogr_geocode('Paris') as g from [in]; " + CONTENTS.format("v"),
        "alter table [in] add column g text generated always as (upper(name)) virtual",
        *(
            "pragma writable_schema = 1; insert into sqlite_master(type, name, tbl_name, rootpage, sql) "
            f"values ('table', 'v', 'v', {page}, '{text}'); " + CONTENTS.format("v")
            for page, text in (
                (0, "CREATE VIRTUAL TABLE v USING VirtualOGR(''secret.csv'')"),
                (7, "create/**/virtual table v using VirtualOGR(''secret.csv'')"),
                (0, 'CREATE VIRTUAL TABLE "v USING rtree(" USING VirtualShape(secret.shp)'),
            )
        ),
    ],
)
def test_a_geopackage_that_computes_when_it_is_read_is_refused(tmp_path: Path, statement: str) -> None:
    homes().to_file(tmp_path / "in.gpkg")
    database = sqlite3.connect(tmp_path / "in.gpkg")
    database.executescript(statement)
    database.commit()
    database.close()
    with pytest.raises(
        InvalidInputError, match=r"views, virtual tables or computed columns|incomplete or not a database"
    ):
        read_vector_file(tmp_path / "in.gpkg")


def digests(folder: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.is_file()
    }


GML = """<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml">
<gml:featureMember><ogr:t><ogr:name>Ana</ogr:name><ogr:p><gml:Point srsName="{crs}"><gml:coordinates>2,48
</gml:coordinates></gml:Point></ogr:p></ogr:t></gml:featureMember></ogr:FeatureCollection>"""


def test_reading_writes_nothing_next_to_a_file_nor_where_a_link_next_to_it_points(tmp_path: Path) -> None:
    (tmp_path / "in.gml").write_text(GML.format(crs="EPSG:4326"))
    before = digests(tmp_path)
    assert read_vector_file(tmp_path / "in.gml")["name"].tolist() == ["Ana"]
    assert digests(tmp_path) == before
    (tmp_path / "in.gfs").symlink_to(tmp_path / "made")
    assert read_vector_file(tmp_path / "in.gml")["name"].tolist() == ["Ana"]
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("part", ["in.mid", "in.dbf", "in.DBF", "in.prj", "in.cpg", "in.shx", "in.xsd"])
def test_a_companion_that_is_a_link_or_a_pipe_is_refused(tmp_path: Path, part: str) -> None:
    suffix = {"in.mid": "mif", "in.xsd": "gml"}.get(part, "shp")
    homes().to_file(tmp_path / f"in.{suffix}", driver=DRIVERS[f".{suffix}"])
    companion = tmp_path / part
    (tmp_path / part.lower()).rename(tmp_path / "other")
    companion.symlink_to(tmp_path / "other")
    with pytest.raises(InvalidInputError, match=f"'{part}' must be a regular file"):
        read_vector_file(tmp_path / f"in.{suffix}")
    companion.unlink()
    os.mkfifo(companion)
    with pytest.raises(InvalidInputError, match=f"'{part}' must be a regular file"):
        read_vector_file(tmp_path / f"in.{suffix}")


@pytest.mark.parametrize("suffix", ["gpkg", "shp"])
def test_a_link_to_a_file_is_followed(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "far").mkdir()
    homes().to_file(tmp_path / "far" / f"in.{suffix}")
    for file in (tmp_path / "far").iterdir():
        if file.suffix == f".{suffix}":
            (tmp_path / file.name).symlink_to(file)
        else:
            shutil.copy(file, tmp_path)
    assert len(read_vector_file(tmp_path / f"in.{suffix}")) == 2


def test_a_database_whose_log_holds_changes_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    homes().to_file(tmp_path / "in.gpkg")
    database = sqlite3.connect(tmp_path / "in.gpkg", isolation_level=None)
    database.executescript(
        "pragma journal_mode = wal; pragma wal_checkpoint(truncate); pragma wal_autocheckpoint = 0"
    )
    assert len(read_vector_file(tmp_path / "in.gpkg")) == 2
    database.executescript("create view v as select fid, geom, name from [in]; " + CONTENTS.format("v"))
    (tmp_path / "left").mkdir()
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"in.gpkg{end}", tmp_path / "left")
    database.close()
    before = digests(tmp_path / "left")
    with pytest.raises(InvalidInputError, match=r"changes in 'in\.gpkg-wal'"):
        read_vector_file(tmp_path / "left" / "in.gpkg")
    assert digests(tmp_path / "left") == before
    (tmp_path / "left" / "in.gpkg-wal").rename(tmp_path / "left" / "in.gpkg-journal")
    with pytest.raises(InvalidInputError, match=r"changes in 'in\.gpkg-journal'"):
        read_vector_file(tmp_path / "left" / "in.gpkg")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="Landlock is a part of Linux")
@pytest.mark.parametrize("suffix", ["gpkg", "shp", "gml", "geojson", "xsd"])
def test_a_crs_or_a_schema_in_a_file_opens_no_other_file(tmp_path: Path, suffix: str) -> None:
    # A process that opens the pipe would wait for ever.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    wkt = (
        f'GEOGCS["x",DATUM["x",SPHEROID["b",6377397,299.15],EXTENSION["PROJ4_GRIDS","{pipe}"]],'
        'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]'
    )
    file = tmp_path / f"in.{suffix}"
    if suffix == "xsd":
        homes().to_file(tmp_path / "in.gml", driver="GML")
        text = file.read_text().replace("<xs:import", f'<xs:include schemaLocation="{pipe}"/><xs:import', 1)
        file.write_text(text)
        assert len(read_vector_file(tmp_path / "in.gml")) == 2
        return
    if suffix == "gml":
        file.write_text(GML.format(crs=f"+proj=longlat +ellps=bessel +nadgrids={pipe}"))
    elif suffix == "geojson":
        name = {"type": "name", "properties": {"name": f"+proj=longlat +ellps=bessel +nadgrids={pipe}"}}
        file.write_text(json.dumps(json.loads(homes().to_json()) | {"crs": name}))
    else:
        homes().to_file(file)
    if suffix == "gpkg":
        database = sqlite3.connect(file)
        database.execute("update gpkg_spatial_ref_sys set definition = ?, organization = 'x'", (wkt,))
        database.commit()
        database.close()
    elif suffix == "shp":
        file.with_suffix(".prj").write_text(wkt)
    with pytest.raises(InvalidInputError, match="the CRS refers to a file"):
        read_vector_file(file)


def test_a_column_whose_name_is_a_word_of_sql_is_no_reason_to_refuse(tmp_path: Path) -> None:
    homes().assign(virtual=1, view=2).to_file(tmp_path / "in.gpkg")
    assert read_vector_file(tmp_path / "in.gpkg")["virtual"].tolist() == [1, 1]


@pytest.mark.parametrize("suffix", ["gpkg", "fgb", "geojson"])
def test_an_error_in_the_middle_of_a_file_is_not_its_end(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"in.{suffix}"
    homes(20_000).to_file(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(0.9 * len(whole))])
    with pytest.raises(InvalidInputError):
        read_vector_file(file)


def test_the_layers_of_openstreetmap_are_read() -> None:
    with VectorFile(helsinki_file()) as file:
        counts = [len(file.frame(layer)) for layer in ("points", "lines", "multipolygons")]
    assert min(counts) > 1000


def test_a_layer_that_is_not_there_is_an_error_and_the_process_ends(tmp_path: Path) -> None:
    homes().to_file(tmp_path / "in.gpkg")
    with (
        pytest.raises(InvalidInputError, match=r"GDAL cannot read 'in\.gpkg' as GPKG"),
        VectorFile(tmp_path / "in.gpkg") as file,
    ):
        file.read("none")
    assert file._process.poll() is not None


def test_no_other_module_opens_a_vector_file() -> None:
    root = Path(__file__).parents[2]
    reads = re.compile(r"\bread_file\(|list_layers|open_arrow|read_info|read_dataframe|read_bounds|import fiona")
    found = {
        str(file.relative_to(root))
        for folder in ("geoind", "webdemo")
        for file in (root / folder).rglob("*.py")
        if reads.search(file.read_text())
    }
    assert found == {"geoind/space/gdal_process.py"}


def test_the_suffix_chooses_the_driver_in_any_case() -> None:
    assert driver_of("A.GPKG") == "GPKG"
    assert driver_of("a.b.osm.PBF") == "OSM"
