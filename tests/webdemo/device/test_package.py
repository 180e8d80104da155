"""The package for npm: built from the sources, packed, imported and typed; small."""

import gzip
import json
import subprocess
import warnings
from pathlib import Path

import pytest

from webdemo.device.build import bundles

from .conftest import DEVICE

TOOLS = Path(__file__).parents[3] / "node_modules" / ".bin"
LARGEST = 15_000
"""Bytes of the module, minified and compressed."""

USE = """
import { Budget, Interpolated, obfuscate, SparseVector, TraceSession } from "geoind";
const report: { lat: number; lon: number } = obfuscate({ lat: 48.8584, lon: 2.2945, level: 1.4, radius: 200 });
const budget = new Budget(localStorage, { epsilon: 0.1 });
new TraceSession(SparseVector.forAccuracy(500), { person: "ana", budget });
const city = new Interpolated("{}");
const epsilon: number = city.epsilon;
obfuscate({ lat: 48.8584, lon: 2.2945, mechanism: city, key: new Uint8Array(32), label: "trip-1" });
// @ts-expect-error: a latitude is a number
obfuscate({ lat: "48", lon: report.lon, epsilon: 0.01 });
"""


@pytest.fixture
def tools() -> Path:
    """The folder of the tools that package.json names."""
    if not (TOOLS / "esbuild").exists():
        warnings.warn("node_modules is missing (python3 dev.py check): the package was not tested", stacklevel=1)
        pytest.skip("node_modules is missing (python3 dev.py check): the package was not tested")
    return TOOLS


@pytest.mark.parametrize("name", ["geoind.js", "geoind.classic.js"])
def test_a_stored_file_is_what_the_sources_make(name: str) -> None:
    stored = (DEVICE / name).read_text("utf-8")
    assert stored == bundles()[name], "run python3 -m webdemo.device.build"


def test_the_module_is_small(tools: Path) -> None:
    minified = subprocess.run(
        [tools / "esbuild", "--minify", DEVICE / "geoind.js"], capture_output=True, check=True
    ).stdout
    assert 5_000 < len(gzip.compress(minified, 9)) < LARGEST


def test_the_package_is_packed_imported_and_typed(node: str, tools: Path, tmp_path: Path) -> None:
    quiet = ["--silent", "--offline", "--no-audit", "--no-fund"]
    pack = ["npm", "pack", "--json", "--pack-destination", str(tmp_path), *quiet]
    [packed] = json.loads(subprocess.run(pack, cwd=DEVICE, capture_output=True, check=True, text=True).stdout)
    assert {file["path"] for file in packed["files"]} == {
        *("package.json", "geoind.js", "geoind.classic.js", "geoind.d.ts")
    }
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    install = ["npm", "install", "--no-package-lock", *quiet, str(tmp_path / packed["filename"])]
    subprocess.run(install, cwd=tmp_path, check=True)
    imported = 'import { reach } from "geoind"; console.log(Math.round(reach(Math.log(4) / 200, 0.95)));'
    done = subprocess.run(
        [node, "--input-type=module", "-e", imported], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == "692"
    (tmp_path / "use.ts").write_text(USE)
    options = ["--strict", "--noEmit", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler"]
    typed = subprocess.run(
        [tools / "tsc", *options, "use.ts"], cwd=tmp_path, capture_output=True, check=False, text=True
    )
    assert typed.returncode == 0, typed.stdout
