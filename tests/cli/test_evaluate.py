import re
import sys
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest

from geoind.cli import main
from geoind.evaluation import PAPER_SETTING


@pytest.fixture
def small_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command on 3x3 cells, in this process: what it does is the same, and takes a second."""
    import numpy as np

    from geoind import Grid
    from geoind.evaluation import Setting

    small = Setting(
        Grid(0, 0, cell=100, columns=3, rows=3),
        weights={"uniform": np.ones(9), "middle row": [0, 0, 0, 1, 1, 1, 0, 0, 0]},
        zone=(3, 1),
    )
    monkeypatch.setattr("geoind.cli.evaluate.PAPER_SETTING", small)
    monkeypatch.setattr("os.cpu_count", lambda: 1)


@pytest.mark.slow
@pytest.mark.usefixtures("small_setting")
def test_the_command_prints_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["evaluate"]) == 0
    shown = capsys.readouterr()
    assert "synthetic city" in shown.out
    assert "planar Laplace" in shown.out
    # A terminal shows the progress.
    assert re.search(r"\d%  \w", shown.err)


@pytest.mark.usefixtures("small_setting")
def test_a_prior_comes_from_a_file_of_check_ins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{k}\t2010-10-12T00:21:28Z\t{48.86 + k % 7 / 2000}\t{2.35 + k % 3 / 2000}\t1" for k in range(90)]
    (tmp_path / "gowalla.txt").write_text("\n".join(lines))
    assert main(["evaluate", "--prior", str(tmp_path / "gowalla.txt"), "--loss", "80", "--cell", "120"]) == 0
    out, err = capsys.readouterr()
    assert "gowalla" in out
    assert "wanted: 80.000 m" in out
    assert "90 positions in the busiest 3 x 3 cells, between 2.3" in err


@pytest.mark.slow
@pytest.mark.usefixtures("small_setting")
def test_the_command_writes_a_page_also_of_a_file_whose_name_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a\udcff.csv"
    path.write_text("lat,lon\n" + "".join(f"{48.86 + k % 7 / 2000},{2.35 + k % 3 / 2000}\n" for k in range(90)))
    assert main(["evaluate", "--prior", str(path), "--out", str(tmp_path / "report.html")]) == 0
    assert "a?" in capsys.readouterr().out
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert set(pd.read_csv(tmp_path / "report.csv")["prior"]) == {"a?"}


@pytest.mark.slow
@pytest.mark.usefixtures("small_setting")
@pytest.mark.parametrize("name", ["trips.csv", "trips.gpkg", "trips.parquet", "trips"])
def test_a_prior_comes_from_whatever_obfuscate_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    rng = np.random.default_rng(0)
    lonlat = rng.normal([2.35, 48.86], 0.002, (200, 2))
    frame = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(*lonlat.T), crs=4326)
    path, more = tmp_path / name, []
    if name == "trips.gpkg":
        frame.to_crs(2154).to_file(path)
    elif name == "trips.parquet":
        frame.to_parquet(path)
    else:
        path.mkdir() if name == "trips" else None
        file = path / "a.csv" if name == "trips" else path
        pd.DataFrame({"y": lonlat[:, 1], "x": lonlat[:, 0]}).to_csv(file, sep=";", index=False)
        more = ["--lat", "y", "--lon", "x"]
    assert main(["evaluate", "--prior", str(path), *more]) == 0
    out, err = capsys.readouterr()
    assert "trips" in out
    assert "of 200 positions in the busiest 3 x 3 cells" in err


OWN = """
import numpy as np
from geoind import Channel
from geoind.evaluation import Contender

def coarse(prior):
    return Channel(prior.sites, prior.sites, np.full((len(prior.sites),) * 2, 1 / len(prior.sites)))

def mixed(prior, share):
    matrix = share * np.eye(len(prior.sites)) + (1 - share) * coarse(prior).matrix
    return Channel(prior.sites, prior.sites, matrix)

tuned = Contender("tuned", mixed, tune=(0.001, 0.01))
"""


@pytest.mark.usefixtures("small_setting")
def test_a_mechanism_comes_from_a_module_that_the_user_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_mechanisms.py").write_text(OWN)
    named = ["--mechanism", "own_mechanisms:coarse=one for all", "--mechanism", "own_mechanisms:tuned"]
    assert main(["evaluate", "--prior", "middle row", "--loss", "60", *named]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^one for all +66.7", out, re.MULTILINE)
    assert re.search(r"^tuned +\d", out, re.MULTILINE)
    assert "Notes:" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mechanism", "own.py"], "must be MODULE:NAME"),
        (["--mechanism", "os:system('true')"], "must be MODULE:NAME"),
        (["--mechanism", "/tmp/own:noise"], "must be MODULE:NAME"),
        (["--mechanism", "no_such_module:noise"], "cannot be imported: ModuleNotFoundError"),
        (["--mechanism", "math:noise"], "cannot be imported: AttributeError"),
        (["--mechanism", "math:pi"], "'pi' must be a Mechanism, a Channel or a function, got float"),
        (["--mechanism", "math:cos=cloaking"], "two mechanisms are called 'cloaking'"),
        (["--mechanism", "math:cos", "--traces"], "do not go together"),
        (["--prior", "nowhere"], "central zone"),
        (["--cell", "0"], "cell must be positive"),
        (["--loss", "nan"], "wanted_loss must be positive"),
        (["--out", "report.pdf"], "--out must be an .html file"),
        (["--traces", "--drives", "0"], "--drives must be a positive whole number"),
    ],
)
def test_an_error_is_one_sentence(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_the_papers_setting_has_the_priors_that_the_help_promises() -> None:
    assert len(PAPER_SETTING.weights) == 9
