import csv
import gc
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import geoind
from geoind.errors import InvalidInputError
from geoind.files import Reading, obfuscate_file
from geoind.files.delimited import BATCH_BYTES
from geoind.files.scan import MISPLACED
from geoind.tables.promise import read_promise
from tests.goodness import p_value

SHARP = geoind.SphericalLaplace(1000.0)
"""So many per metre that a report is within some millimetres: the columns can be followed."""


def obfuscated(tmp_path: Path, text: bytes | str, name: str = "in.csv", **options: Any) -> bytes:
    source, target = tmp_path / name, tmp_path / f"out-{name}"
    source.write_bytes(text.encode() if isinstance(text, str) else text)
    if "epsilon" not in options and "level" not in options:
        options["mechanism"] = SHARP
    obfuscate_file(source, target, **with_reading(options))
    return target.read_bytes()


def with_reading(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with those of a `Reading` put into one."""
    names = [name for name in options if name in Reading.__dataclass_fields__]
    rest = {name: value for name, value in options.items() if name not in names}
    return rest | {"reading": Reading(**{name: options[name] for name in names})} if names else rest


def reason(tmp_path: Path, text: bytes | str, name: str = "in.csv", **options: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        obfuscated(tmp_path, text, name, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name], "nothing may be left after an error"
    return str(caught.value)


def test_every_byte_but_the_coordinates_stays(tmp_path: Path) -> None:
    text = (
        b"\xef\xbb\xbfname,lat,lon,note\r\n"
        b'"Tour ""Eiffel""",48.8584000,2.2945,"a, b\nc"\r\n'
        b"\r\n"
        b"  M\xc3\xa9tro \xff,+48.8421, 2.3219 ,0.10\n"
        b'x,"48.5","2.5",'
    )
    assert obfuscated(tmp_path, text) == (
        b"\xef\xbb\xbfname,lat,lon,note\r\n"
        b'"Tour ""Eiffel""",48.85840,2.29450,"a, b\nc"\r\n'
        b"\r\n"
        b"  M\xc3\xa9tro \xff,48.84210,2.32190,0.10\n"
        b"x,48.50000,2.50000,"
    )


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "newline"])
def test_the_coordinates_may_be_the_last_columns(tmp_path: Path, ending: str, last: str) -> None:
    text = ending.join(["id,lat,lon", "1,1.0,2.0", "2,3.0,4.0"]) + (ending if last else "")
    expected = text.replace("1.0,2.0", "1.00000,2.00000").replace("3.0,4.0", "3.00000,4.00000")
    assert obfuscated(tmp_path, text).decode() == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    notes=st.lists(st.text(alphabet='ab ,;"\n\t_é', max_size=8), min_size=1, max_size=6),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    ending=st.sampled_from(["\n", "\r\n"]),
    first=st.booleans(),
)
def test_what_another_csv_reader_sees_is_the_same_but_for_the_coordinates(
    tmp_path: Path, notes: list[str], quoting: Literal[0, 1], ending: str, first: bool
) -> None:
    rows = [["note", "lat", "lon"]] + [[note, f"{i}.25", f"-{i}.5"] for i, note in enumerate(notes)]
    order = [0, 1, 2] if first else [2, 1, 0]
    buffer = io.StringIO()
    csv.writer(buffer, quoting=quoting, lineterminator=ending).writerows([[row[i] for i in order] for row in rows])
    (tmp_path / "h").mkdir(exist_ok=True)
    result = obfuscated(tmp_path / "h", buffer.getvalue()).decode()
    read = list(csv.reader(io.StringIO(result, newline="")))
    assert len(read) == len(rows)
    for before, after in zip(rows[1:], read[1:], strict=True):
        after = [after[order.index(i)] for i in range(3)]
        assert after[0] == before[0]
        assert float(after[1]) == pytest.approx(float(before[1]), abs=2e-5)
        assert float(after[2]) == pytest.approx(float(before[2]), abs=2e-5)


def test_many_batches_with_and_without_quotes_are_like_one(tmp_path: Path) -> None:
    rows = [f"{i},{i % 80}.5,{i % 170}.25,{'x' * 40}" for i in range(3 * BATCH_BYTES // 50)]
    rows[len(rows) // 2] = '7,1.5,2.25,"a\nb"'
    text = "\n".join(["id,lat,lon,pad", *rows, ""])
    result = obfuscated(tmp_path, text, order="keep").decode().splitlines()
    expected = text.replace(".5,", ".50000,").replace(".25,", ".25000,").splitlines()
    assert result == expected


def test_the_noise_is_that_of_the_mechanism(tmp_path: Path) -> None:
    count = 100_000
    text = "lat,lon\n" + "48.8584,2.2945\n" * count
    result = obfuscated(tmp_path, text, epsilon=0.01)
    lat, lon = np.loadtxt(io.BytesIO(result), delimiter=",", skiprows=1).T
    import pyproj

    from geoind.distances import EARTH_RADIUS

    radius = pyproj.Geod(a=EARTH_RADIUS, f=0).inv(np.full(count, 2.2945), np.full(count, 48.8584), lon, lat)[2]
    # Fresh noise, not a seed: a false alarm once in a billion runs.
    assert p_value(radius, geoind.SphericalLaplace(0.01).radius_cdf) > 1e-9
    for wrong in (0.01 / 1.05, 0.01 * 1.05):
        assert p_value(radius, geoind.SphericalLaplace(wrong).radius_cdf) < 1e-9


def test_reports_are_on_the_lattice_and_coarser_for_wide_noise(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "lat,lon\n1,2\n", epsilon=0.01).split(b"\n")[1].count(b".") == 2
    line = obfuscated(tmp_path, "lat,lon\n1,2\n", name="wide.csv", epsilon=5e-6).split(b"\n")[1]
    decimals = geoind.SphericalLaplace(5e-6).decimals
    assert {len(number.split(b".")[1]) for number in line.split(b",")} == {decimals}


def test_columns_are_found_by_their_usual_names_or_chosen(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "Latitude,LONGITUDE\n1,2\n") == b"Latitude,LONGITUDE\n1.00000,2.00000\n"
    assert obfuscated(tmp_path, '"lng","lat"\n2,1\n') == b'"lng","lat"\n2.00000,1.00000\n'
    chosen = obfuscated(tmp_path, "a,b,c\n1,2,x\n", lat="a", lon="b")
    assert chosen == b"a,b,c\n1.00000,2.00000,x\n"


def test_several_places_of_a_row_have_noise_of_their_own(tmp_path: Path) -> None:
    text = "from_lat,from_lon,to_lat,to_lon,fare\n" + "48.85,2.35,48.85,2.35,7\n" * 50
    result = obfuscated(
        tmp_path, text, epsilon=0.01, lat=["from_lat", "to_lat"], lon=["from_lon", "to_lon"]
    ).decode()
    rows = [line.split(",") for line in result.splitlines()[1:]]
    assert all(row[:2] != row[2:4] for row in rows)
    assert {row[4] for row in rows} == {"7"}
    assert read_promise(tmp_path / "out-in.csv").places == (("from_lon", "from_lat"), ("to_lon", "to_lat"))


def test_tabs_and_other_delimiters(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "lat\tlon\n1\t2\n", name="in.tsv") == b"lat\tlon\n1.00000\t2.00000\n"
    for delimiter in ";|\t":
        text = f"lat{delimiter}lon\n1{delimiter}2\n"
        for chosen in (delimiter, None):
            result = obfuscated(tmp_path, text, delimiter=chosen).decode()
            assert result == f"lat{delimiter}lon\n1.00000{delimiter}2.00000\n"
    assert obfuscated(tmp_path, "lat:lon\n1:2\n", delimiter=":") == b"lat:lon\n1.00000:2.00000\n"


def test_decimal_commas_stay_commas(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "lat;lon\n1,5;-2,25\n") == b"lat;lon\n1,50000;-2,25000\n"
    assert obfuscated(tmp_path, 'lat,lon\n"1,5","2,25"\n') == b'lat,lon\n"1,50000","2,25000"\n'


def test_what_is_missing_is_hinted_at(tmp_path: Path) -> None:
    assert "is there no header?" in reason(tmp_path, "1.5,2.5\n3.5,4.5\n")
    assert "what is the delimiter?" in reason(tmp_path, "lat:lon\n1:2\n")


def test_quotes_in_a_tsv_file_are_plain_text_unless_asked_for(tmp_path: Path) -> None:
    text = 'lat\tlon\tnote\n1\t2\t5" pipe\n1\t2\t"open\n3\t4\tclosed"\n'
    expected = text.replace("1\t2", "1.00000\t2.00000").replace("3\t4", "3.00000\t4.00000")
    assert obfuscated(tmp_path, text, name="in.tsv").decode() == expected
    (tmp_path / "out-in.tsv").unlink()
    (tmp_path / "out-in.tsv.geoind.json").unlink()
    assert reason(tmp_path, text, name="in.tsv", quoting=True).startswith("line 2: a quote")
    assert obfuscated(tmp_path, text, name="in.txt").decode() == expected, (
        "tabs make a TSV file, whatever its name"
    )


def test_without_a_header_columns_are_numbers(tmp_path: Path) -> None:
    result = obfuscated(tmp_path, "7,1,2\n8,3,4\n", header=False, lat="2", lon="3")
    assert result == b"7,1.00000,2.00000\n8,3.00000,4.00000\n"
    assert obfuscated(tmp_path, '"a\nb",1,2\n', header=False, lat="2", lon="3") == b'"a\nb",1.00000,2.00000\n'


def test_a_header_alone_gives_a_header_alone(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "lat,lon\n") == b"lat,lon\n"
    assert obfuscated(tmp_path, "lat,lon") == b"lat,lon"


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_files_in_and_out(tmp_path: Path, suffix: str) -> None:
    import pyarrow as pa

    codec = {"gz": "gzip", "zst": "zstd"}[suffix]
    source, target, plain = tmp_path / f"in.csv.{suffix}", tmp_path / f"out.csv.{suffix}", tmp_path / "plain.csv"
    with pa.CompressedOutputStream(str(source), codec) as file:
        file.write(b"lat,lon\n" + b"1,2\n" * 1000)
    assert obfuscate_file(source, target, mechanism=SHARP).reports == 1000
    with pa.CompressedInputStream(str(target), codec) as file:
        assert file.read() == b"lat,lon\n" + b"1.00000,2.00000\n" * 1000
    obfuscate_file(target, plain, mechanism=SHARP)
    assert plain.read_bytes().startswith(b"lat,lon\n1.00000")


def test_a_damaged_compressed_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"lat,lon\n" + b"1,2\n" * 100_000)
    assert "compressed" in reason(tmp_path, whole[: len(whole) // 2], "in.csv.gz")
    assert "compressed" in reason(tmp_path, b"lat,lon\n1,2\n", "in.csv.gz")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("a,12.345,", "line 3: there is no place"),
        ("a,,12.345", "line 3: there is no place"),
        ("a,nan,12.345", "line 3: the latitude must be a finite number"),
        ("a,inf,12.345", "line 3: the latitude must be a finite number"),
        ("a,12.345x,2", "line 3: the latitude must be a finite number"),
        ("a,1_2.345,2", "line 3: the latitude must be a finite number"),
        ("a,91,12.345", "line 3: |latitude| must be at most 90"),
        ("a,12.345,180.5", "line 3: |longitude| must be at most 180"),
        ("12.345", "line 3: 1 field, where the first line has 3"),
        ("a,b,12.345,1", "line 3: 4 fields, where the first line has 3"),
        ('a,"12.345,1', "line 3: a quote is never closed"),
        (",,", "line 3: there is no place"),
        ("a,12.345\r,2", "line 3: a carriage return without a line feed"),
        ("a\0,12.345,2", "line 3: a NUL byte: the text must be UTF-8"),
        ('5" pipe,12.345,2', f"line 3: {MISPLACED}"),
        ('"a"b,12.345,2', f"line 3: {MISPLACED}"),
        ('"a" ,12.345,2', f"line 3: {MISPLACED}"),
        ('a,12.345, "2"', f"line 3: {MISPLACED}"),
    ],
)
def test_a_bad_row_stops_with_its_line_and_the_reason_and_no_coordinate(
    tmp_path: Path, row: str, why: str
) -> None:
    message = reason(tmp_path, f"name,lat,lon\nok,1,2\n{row}\nok,3,4\n")
    assert message == why
    assert "12.345" not in message


def test_line_numbers_count_lines_inside_quotes(tmp_path: Path) -> None:
    text = 'name,lat,lon\n"a\nb\nc",1,2\nx,1,2\nbad,91,2\n'
    assert reason(tmp_path, text).startswith("line 6: ")


def test_line_numbers_are_right_far_into_a_file(tmp_path: Path) -> None:
    count = 3 * BATCH_BYTES // 100
    text = "name,lat,lon\n" + ("x" * 100 + ",1,2\n") * count
    assert reason(tmp_path, text + "bad,91,2\n").startswith(f"line {count + 2}: ")


@pytest.mark.parametrize(
    "text",
    [
        "id,lat,lon\r\n1,1.0,2.0\n2,1.0,2.0\r\n3,1.0,2.0\n",
        "id,lat,lon\n1,1.0,2.0\r\n2,1.0,2.0\n",
        'id,lat,lon\n"a\rb",1.0,2.0\n"c\r\n",1.0,2.0\n',
    ],
)
def test_line_breaks_may_be_mixed(tmp_path: Path, text: str) -> None:
    assert obfuscated(tmp_path, text).decode() == text.replace("1.0,2.0", "1.00000,2.00000")


def test_rejects_take_the_bad_rows_and_the_rest_goes_on(tmp_path: Path) -> None:
    text = 'name,lat,lon\na,1,2\nbad,91,2\n"q",1,2\nworse,"é\n\n'.replace('"é', "é")
    source, target, rejects = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "rejects.ndjson"
    source.write_text(text)
    summary = obfuscate_file(source, target, mechanism=SHARP, rejects=rejects)
    assert (summary.reports, summary.rejected) == (2, 2)
    assert target.read_text() == 'name,lat,lon\na,1.00000,2.00000\n"q",1.00000,2.00000\n'
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert told == [
        {"line": 3, "reason": "|latitude| must be at most 90", "record": "bad,91,2"},
        {"line": 5, "reason": "2 fields, where the first line has 3", "record": "worse,é"},
    ]


def test_rejects_without_bad_rows_are_an_empty_file(tmp_path: Path) -> None:
    obfuscated(tmp_path, "lat,lon\n1,2\n", rejects=tmp_path / "rejects")
    assert (tmp_path / "rejects").read_bytes() == b""


def test_missing_coordinates_stay_when_asked_for(tmp_path: Path) -> None:
    text = 'n,lat,lon\na,,\nb, ," "\nc,1,2\nd,,2\n'
    assert reason(tmp_path, text) == "line 2: there is no place"
    # Half a place is none, and not a place that may stay.
    assert obfuscated(tmp_path, text, missing="keep") == b"n,lat,lon\na,,\nb,,\nc,1.00000,2.00000\nd,,\n"


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("", {}, "line 1: the file is empty"),
        ("a,b\n1,2\n", {}, "say which with lon"),
        ("lon,b\n1,2\n", {}, "say which with lat"),
        ("lat,lon,lng\n1,2,3\n", {}, "several columns"),
        ("lat,lon\n1,2\n", {"lat": "y", "lon": "lon"}, "lat: column 'y' must be there once"),
        ("lat,lon,lat\n1,2,3\n", {"lat": "lat", "lon": "lon"}, "several columns are called 'lat'"),
        ("lat,lon\n1,2\n", {"lat": "lon", "lon": "lon"}, "different columns"),
        ("lat,lon\n1,2\n", {"header": False}, "say which with lon"),
        ("lat,lon\n1,2\n".encode("utf-16"), {}, "UTF-16"),
        ("lat,lon\n1,2\n", {"delimiter": "ab"}, "single character"),
        ("lat,lon\n1,2\n", {"delimiter": '"'}, "single character"),
        ("lat,lon\n1,2\n", {"missing": "drop"}, "missing must be"),
        ("lat,lon\n1,2\n", {"format": "xml"}, "format must be one of"),
        ("lat,lon\n1,2\n", {"epsilon": float("nan")}, "epsilon must be positive"),
        ("lat,lon\n1,2\n", {"epsilon": 1e-9}, "reach round the Earth"),
        ("lat,lon\n1,2\n", {"key": bytes(32)}, "go together"),
        ("lat,lon\n1,2\n", {"id_column": "lat"}, "go together"),
        ("lat,lon\n1,2\n", {"id_column": "who", "key": bytes(32)}, "column 'who' must be there once"),
        ("id,lat,lon\n,1,2\n", {"id_column": "id", "key": bytes(32)}, "line 2: there is no identity"),
        ("id,lat,lon\na,1,2\n", {"id_column": "id", "key": b"short"}, "32 bytes"),
    ],
)
def test_bad_requests_are_refused_and_nothing_is_written(
    tmp_path: Path, text: bytes | str, options: dict[str, Any], why: str
) -> None:
    assert why in reason(tmp_path, text, **options)


def test_a_key_repeats_the_noise_of_a_record_wherever_it_stands(tmp_path: Path) -> None:
    rows = [f"trip {i},48.{i},2.{i}" for i in range(50)]
    options: dict[str, Any] = {"epsilon": 0.01, "key": bytes(range(32)), "id_column": "id", "order": "keep"}
    first = obfuscated(tmp_path, "\n".join(["id,lat,lon", *rows]), **options).decode().splitlines()
    again = (
        obfuscated(tmp_path, "\n".join(["id,lat,lon", '"x",1,1', *rows[::-1]]), **options).decode().splitlines()
    )
    assert again[2:] == first[1:][::-1]
    other = obfuscated(tmp_path, "\n".join(["id,lat,lon", *rows]), **options | {"key": bytes(32)}).decode()
    assert not set(other.splitlines()[1:]) & set(first[1:])


def test_the_sidecar_tells_the_promise_and_neither_key_nor_truth(tmp_path: Path) -> None:
    key = bytes(range(32))
    obfuscated(
        tmp_path, "id,lat,lon\na,48.8584,2.2945\n", epsilon=None, level=2.0, radius=200, key=key, id_column="id"
    )
    promise = read_promise(tmp_path / "out-in.csv")
    assert (promise.epsilon, promise.level, promise.radius, promise.decimals) == (0.01, 2.0, 200, 5)
    text = (tmp_path / "out-in.csv.geoind.json").read_text()
    assert "48.8584" not in text
    assert key.hex() not in text


def test_columns_that_tell_are_refused_dropped_or_kept(tmp_path: Path) -> None:
    text = "dropoff_lat,lat,lon,home address,platform\n3,1,2,4,5\n"
    message = reason(tmp_path, text)
    assert "'dropoff_lat'" in message
    assert "'home address'" in message
    assert "platform" not in message
    dropped = obfuscated(tmp_path, text, drop=["home address"], keep=["dropoff_lat"])
    assert dropped == b"dropoff_lat,lat,lon,platform\n3,1.00000,2.00000,5\n"
    assert read_promise(tmp_path / "out-in.csv").kept == ("dropoff_lat",)
    assert (
        obfuscated(tmp_path, text, drop=["dropoff_lat", "platform", "home address"])
        == b"lat,lon\n1.00000,2.00000\n"
    )


def test_rows_sorted_by_place_are_shuffled_all_together(tmp_path: Path) -> None:
    count = 3 * BATCH_BYTES // 40
    rows = [f"{i},{i / count * 80:.6f},1.5,{'x' * 20}" for i in range(count)]
    text = "\n".join(["n,lat,lon,pad", *rows])
    assert "sorted by place" in reason(tmp_path, text)
    result = obfuscated(tmp_path, text, order="shuffle").decode().splitlines()
    numbers = [int(line.split(",")[0]) for line in result[1:]]
    assert sorted(numbers) == list(range(count))
    assert abs(np.corrcoef(numbers, np.arange(count))[0, 1]) < 0.02


def test_a_zip_archive_of_one_file_goes_in_and_out(tmp_path: Path) -> None:
    for name in ("in.zip", "in.csv.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("trips.csv", "lat,lon\n1,2\n")
        obfuscate_file(tmp_path / name, tmp_path / f"out-{name}", mechanism=SHARP)
        with zipfile.ZipFile(tmp_path / f"out-{name}") as archive:
            assert archive.read(archive.namelist()[0]) == b"lat,lon\n1.00000,2.00000\n"
    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        archive.writestr("a.csv", "lat,lon\n")
        archive.writestr("b.csv", "lat,lon\n")
    with pytest.raises(InvalidInputError, match="holds 2"):
        obfuscate_file(tmp_path / "two.csv.zip", tmp_path / "out.csv", mechanism=SHARP)


def test_csv_becomes_parquet_and_parquet_csv(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "in.csv").write_text('id,lat,lon,note\n007,1,2,"a, b"\n008,3,4,\n')
    obfuscate_file(tmp_path / "in.csv", tmp_path / "a.parquet", mechanism=SHARP)
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column("lat").to_pylist() == [1.0, 3.0]
    assert table.column("id").to_pylist() == ["007", "008"]
    assert read_promise(tmp_path / "a.parquet").epsilon == 1000
    obfuscate_file(tmp_path / "a.parquet", tmp_path / "b.csv", mechanism=SHARP)
    assert (tmp_path / "b.csv").read_text() == 'id,lat,lon,note\n007,1,2,"a, b"\n008,3,4,\n'
    obfuscate_file(tmp_path / "a.parquet", tmp_path / "d.tsv", mechanism=SHARP)
    assert (tmp_path / "d.tsv").read_text() == "id\tlat\tlon\tnote\n007\t1\t2\ta, b\n008\t3\t4\t\n"
    obfuscate_file(tmp_path / "a.parquet", tmp_path / "c.ndjson.gz", mechanism=SHARP)
    with gzip.open(tmp_path / "c.ndjson.gz") as file:
        assert json.loads(file.readline()) == {"id": "007", "lat": 1.0, "lon": 2.0, "note": "a, b"}


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".zip"])
def test_a_refused_file_leaves_no_compression_open(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / "places.csv"
    source.write_text("lat,lon\n48.8584,2.2945\ninf,2.3\n")
    with pytest.raises(InvalidInputError):
        obfuscate_file(source, tmp_path / f"reports.csv{suffix}", epsilon=0.01)
    # What is collected without having been closed would warn, which is an error here.
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["places.csv"]
