"""Mechanisms from a file of Python: the plane, the draws, the measured epsilon, and files that are refused."""

import base64
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from pyproj import Geod

from geoind import Channel, Grid, InvalidInputError, KeyedRandomness, Places, Projected, Projection, exponential
from geoind.channels import Interpolated
from geoind.channels.rows import choose_exactly
from geoind.files import load_mechanism, save_mechanism
from tests.trials import trials

from .conftest import Script

GRID = Grid(-450, -350, cell=100, columns=10, rows=8)
CAFES = Places(np.random.default_rng(1).uniform(-400, 400, (30, 2)))
BOX = shapely.box(2.345, 48.857, 2.355, 48.863)
PARIS = Projection(2.35, 48.86)
FIJI = Projection(179.999, -17.0)
CITIES = {
    "a box": Projected(Interpolated(exponential(GRID, GRID, epsilon=0.005)), PARIS, domain=BOX),
    "other outputs": Projected(Interpolated(exponential(GRID, CAFES, epsilon=0.02)), PARIS),
    "the antimeridian": Projected(Interpolated(exponential(GRID, GRID, epsilon=0.01)), FIJI),
}
REPORTS = trials(6000)


def text_of(mechanism: Projected, folder: Path) -> str:
    save_mechanism(folder / "city.json", mechanism)
    return (folder / "city.json").read_text("utf-8")


def places_in(mechanism: Projected, count: int) -> Any:
    """Random places of the domain, a third of them beyond the sites where the domain is larger."""
    xy = np.random.default_rng(2).uniform(-600, 600, (count, 2))
    if mechanism.domain is None:
        return mechanism.projection.to_lonlat(xy)
    west, south, east, north = mechanism.domain.bounds
    return np.random.default_rng(2).uniform([west, south], [east, north], (count, 2))


def test_the_plane_is_that_of_geographiclib_and_nearly_that_of_proj(script: Script) -> None:
    """PROJ rounds the radians of the origin, which moves the whole plane by up to 30 nm."""
    rng = np.random.default_rng(3)
    cases = []
    for lat in (0.0, 48.86, -17.0, 84.9, -89.9, 90.0):
        lon = rng.uniform(-180, 180)
        plane = Projection(lon, lat)
        for size in (1.0, 1e3, 1e5, 7e5):
            for x, y in rng.uniform(-size, size, (20, 2)):
                place = plane.to_lonlat([[x, y]])[0].tolist()
                cases.append([[lon, lat], *place, *plane.to_xy([place])[0].tolist()])
    run = 'const { toPlane } = await source("plane"); return given.map((c) => toPlane(c[0], c[1], c[2]));'
    for (origin, lon, lat, *proj), found in zip(cases, script(run, cases), strict=True):
        bearing, _, metres = Geod(ellps="WGS84").inv(origin[0], origin[1], lon, lat)
        angle = math.radians(bearing)
        assert math.dist(found, (metres * math.sin(angle), metres * math.cos(angle))) < 5e-9
        assert math.dist(found, proj) < 5e-8


@pytest.mark.parametrize("name", CITIES)
def test_keyed_reports_are_those_of_python(script: Script, tmp_path: Path, name: str) -> None:
    city = CITIES[name]
    places = places_in(city, REPORTS)
    run = """
    const key = Uint8Array.from({ length: 32 }, (_, i) => i);
    const mechanism = new geoind.Interpolated(given.text);
    const reports = given.places.map(([lon, lat], label) => geoind.obfuscate({ lat, lon, mechanism, key, label }));
    return [mechanism.epsilon, reports.map(({ lat, lon }) => [lon, lat])];
    """
    epsilon, reports = script(run, {"text": text_of(city, tmp_path), "places": places.tolist()})
    source = KeyedRandomness(bytes(range(32)), np.arange(len(places)))
    assert np.array_equal(reports, city.sample(places, rng=source))
    assert city.epsilon * (1 - 1e-6) <= epsilon <= city.epsilon * (1 + 1e-6)
    # The file is also one for Python.
    back = load_mechanism(tmp_path / "city.json")
    assert np.array_equal(reports, back.sample(places, rng=source))


def test_draws_of_the_browsers_generator_have_the_law(script: Script, tmp_path: Path) -> None:
    """A place between two sites of a deterministic channel, nearly: each corner has its weight."""
    sharp = np.full((80, 80), 1e-9)
    np.fill_diagonal(sharp, 1 - 79e-9)
    city = Projected(Interpolated(Channel(GRID, GRID, sharp)), PARIS)
    lonlat = PARIS.to_lonlat(GRID.xy[[0]] + [[30.0, 60.0]])[0].tolist()
    run = """
    const mechanism = new geoind.Interpolated(given.text);
    const [lon, lat] = given.place;
    const drawn = Array.from({ length: 10000 }, () => geoind.obfuscate({ lat, lon, mechanism }));
    return drawn.map(({ lat, lon }) => [lon, lat]);
    """
    drawn = np.array(script(run, {"text": text_of(city, tmp_path), "place": lonlat}))
    for site, weight in ((0, 0.28), (1, 0.12), (10, 0.42), (11, 0.18)):
        count = (drawn == city.reports[site]).all(axis=1).sum()
        assert abs(count - 10_000 * weight) < 6 * math.sqrt(10_000 * weight * (1 - weight))


def test_draws_next_to_a_border_are_exact(script: Script) -> None:
    """From words within one bit of a border to such that doubles decide, and with further words of both kinds."""
    rng, rows, cases = np.random.default_rng(4), [], []
    rows.append(np.array([5e-324, 1e-323]))
    rows += [rng.dirichlet(np.full(count, 0.3)) for count in (4, 50, 400)]
    for row in rows:
        borders = np.cumsum(row) / row.sum()
        for border in borders[:-1]:
            for bit in (None, 0, 3, 9, 12, 40):
                for sign in (-1, 1):
                    word = int(float(border) * 2**64) + (0 if bit is None else sign << bit)
                    cases.append((row, min(max(word, 0), 2**64 - 1), [int(w) for w in rng.integers(0, 2**63, 2)]))
    run = """
    const { choose } = await source("interpolated");
    const halves = (word) => [Number(BigInt(word) & 0xffffffffn), Number(BigInt(word) >> 32n)];
    return given.map(([row, word, more]) => {
        const [first, further] = [halves(word), more.flatMap(halves)];
        return choose(row, (number) => Uint32Array.from(number ? further : [...first, 0, 0]));
    });
    """
    given = [[row.tolist(), str(word), list(map(str, more))] for row, word, more in cases]
    for (row, word, (first, second)), found in zip(cases, script(run, given), strict=True):
        pair = (first, second)
        assert found == choose_exactly(row, word, lambda _, pair=pair: pair)  # type: ignore[misc]


def entries(change: Any) -> Any:
    """Change the matrix of a file."""

    def changed(about: dict[str, Any]) -> None:
        matrix = np.frombuffer(base64.b64decode(about["matrix"])).reshape(80, 80).copy()
        change(matrix)
        about["matrix"] = base64.b64encode(matrix.tobytes()).decode()

    return changed


def tripled(matrix: Any) -> None:
    matrix[7, 70] *= 3
    matrix[7, 7] -= matrix[7, 70] * 2 / 3


BAD: dict[str, Any] = {
    "another format": {"format": "geoind mechanism 2"},
    "no interpolation": {"interpolated": False},
    "another metric": {"metric": "0" * 64},
    "no promise": {"epsilon": None},
    "a smaller promise": lambda about: about.update(epsilon=about["epsilon"] * (1 - 1e-6)),
    "a changed entry": entries(tripled),
    "a negative entry": entries(lambda matrix: matrix.__setitem__((3, 3), -matrix[3, 3])),
    "not a number": entries(lambda matrix: matrix.__setitem__((3, 3), np.nan)),
    "a row that does not sum to 1": entries(lambda matrix: matrix.__setitem__((3, 3), 0.9)),
    "a short matrix": lambda about: about.update(matrix=about["matrix"][:-12]),
    "a matrix of numbers": {"matrix": [0.5]},
    "no base 64": lambda about: about.update(matrix="!" + about["matrix"][1:]),
    "places": {"inputs": GRID.xy.tolist()},
    "half a column": {"inputs": [0, 0, 100, 10.5, 8]},
    "no cell": {"inputs": [0, 0, 0, 10, 8]},
    "many cells": {"inputs": [0, 0, 100, 1e6, 1e6]},
    "text": {"inputs": "grid"},
    "text in a list": {"inputs": [0, 0, "100", 10, 8]},
    "few reports": lambda about: about["reports"].pop(),
    "a report beyond the pole": lambda about: about["reports"].__setitem__(0, [0, 91]),
    "no projection": {"projection": None},
    "a far projection": {"projection": [100, 0]},
    "half a domain": {"domain": [2.3, 48.8]},
    "a wide domain": {"domain": [-100, -1, 100, 1]},
}


def test_files_that_are_not_valid_are_refused(script: Script, tmp_path: Path) -> None:
    good = json.loads(text_of(CITIES["a box"], tmp_path))
    given = ["", "{", "null", "[]", "7"]
    for change in BAD.values():
        about = json.loads(json.dumps(good))
        change(about) if callable(change) else about.update(change)
        given.append(json.dumps(about))
        (tmp_path / "bad.json").write_text(given[-1])
        if change != BAD["places"] and change != BAD["a far projection"] and change != BAD["no promise"]:
            with pytest.raises(InvalidInputError, match="is not a mechanism saved by geoind"):
                load_mechanism(tmp_path / "bad.json")
    run = """
    return given.map((text) => {
        try { new geoind.Interpolated(text); } catch (error) { return [error.name, error.message]; }
        return ["accepted", ""];
    });
    """
    for name, (kind, message) in zip(["text"] * 5 + list(BAD), script(run, given), strict=True):
        assert kind in ("RangeError", "TypeError"), name
        assert len(message) < 120, name


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (CITIES["a box"].mechanism, "must be a Projected"),
        (Projected(exponential(GRID, GRID, epsilon=0.01), PARIS), "must be a Projected"),
        (Projected(Interpolated(exponential(CAFES, GRID, epsilon=0.01)), PARIS), "must be a grid"),
        (
            Projected(
                Interpolated(exponential(GRID, GRID, epsilon=0.01)), PARIS, domain=shapely.box(2, 30, 3, 50)
            ),
            "within 1000 km",
        ),
        (Projected(Interpolated(Channel.deterministic(GRID, GRID, np.arange(80))), PARIS), "finite epsilon"),
    ],
)
def test_what_a_device_cannot_draw_from_is_not_saved_for_it(mechanism: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=message):
        save_mechanism(tmp_path / "city.json", mechanism)
    assert not (tmp_path / "city.json").exists()
