"""200,000 keyed reports are those of Python, bit for bit; with GEOIND_TRIALS=5 a million."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from geoind import KeyedRandomness, SphericalLaplace
from tests.trials import trials

from .conftest import DEVICE

REPORTS = trials(200_000)
KINDS = [(0.006931471805599453, 5), (0.2, 5), (0.0005, 3), (0.0003, 5), (3e-6, 5), (0.01, 0)]

RUN = """
import { readFileSync, writeFileSync } from "node:fs";
const [, folder, file, ...options] = process.argv;
const { obfuscate } = await import(`${folder}/geoind.js`);
const [epsilon, decimals, start] = options.map(Number);
const places = new Float64Array(new Uint8Array(readFileSync(file)).buffer);
const key = Uint8Array.from({ length: 32 }, (_, i) => i);
for (let i = 0; i < places.length; i += 2) {
    const place = { lon: places[i], lat: places[i + 1] };
    const { lat, lon } = obfuscate({ ...place, epsilon, decimals, key, label: start + i / 2 });
    [places[i], places[i + 1]] = [lon, lat];
}
writeFileSync(file, new Uint8Array(places.buffer));
"""


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_keyed_reports_are_those_of_python(node: str, tmp_path: Path, kind: int) -> None:
    epsilon, decimals = KINDS[kind]
    count = -(-REPORTS // len(KINDS))
    rng = np.random.default_rng(kind)
    points = np.column_stack([rng.uniform(-180, 180, count), np.degrees(np.arcsin(rng.uniform(-1, 1, count)))])
    # A tenth of them near a pole, where the lattice is coarser.
    near = count // 10
    points[:near, 1] = np.copysign(90 - 10 ** rng.uniform(-6, 1, near), rng.uniform(-1, 1, near))
    file = tmp_path / "places"
    file.write_bytes(points.tobytes())
    options = map(str, (DEVICE, file, repr(epsilon), decimals, kind * count))
    subprocess.run([node, "--input-type=module", "-e", RUN, "--", *options], check=True)
    labels = np.arange(count) + kind * count
    reports = SphericalLaplace(epsilon, decimals).sample(points, rng=KeyedRandomness(bytes(range(32)), labels))
    # Also the sign of zero.
    assert reports.tobytes() == file.read_bytes()
