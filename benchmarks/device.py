"""Measurements of the JavaScript module for devices: time of a report in Node, size, and errors of its functions.

python3 dev.py bench device           prints the tables and writes docs/benchmarks/device.md (a minute)
"""

import gzip
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from flint import arb, ctx

from geoind import Grid, Projected, Projection, exponential
from geoind.channels import Interpolated
from geoind.files import save_mechanism

ROOT = Path(__file__).resolve().parent.parent
DEVICE = ROOT / "webdemo" / "device"
OUT = ROOT / "docs" / "benchmarks" / "device.md"
BASELINE = "noise of Location Guard"

TIMES = """
const geoind = await import(FOLDER + "geoind.js");
const key = Uint8Array.from({ length: 32 }, (_, i) => i);
const [lat, lon, epsilon] = [48.8584, 2.2945, Math.log(4) / 200];
const slow = new geoind.SphericalLaplace(epsilon);
slow.error = 1;
const words = () => crypto.getRandomValues(new Uint32Array(4));
const method = new geoind.SparseVector({ fresh: epsilon, test: epsilon, limit: 1500, choice: epsilon / 2 });
const session = new geoind.TraceSession(method, { key });
const places = new geoind.SamePlace(key);
const text = (await import("node:fs")).readFileSync(CITY, "utf8");
const mechanism = new geoind.Interpolated(text);

// The noise of Location Guard: doubles, Math.random, and the inverse of the radius by Lambert's W.
function lambert(x) {
  let w = Math.log(-x) - Math.log(-Math.log(-x));
  for (let i = 0; i < 20; i += 1) {
    const [e, off] = [Math.exp(w), w * Math.exp(w) - x];
    w -= off / (e * (w + 1) - ((w + 2) * off) / (2 * w + 2));
  }
  return w;
}
function locationGuard() {
  const [theta, p] = [Math.random() * Math.PI * 2, Math.random()];
  const arc = -(1 / epsilon) * (lambert((p - 1) / Math.E) + 1) / 6378137;
  const phi = (lat * Math.PI) / 180;
  const end = Math.asin(Math.sin(phi) * Math.cos(arc) + Math.cos(phi) * Math.sin(arc) * Math.cos(theta));
  const east = Math.sin(theta) * Math.sin(arc) * Math.cos(phi);
  const turn = Math.atan2(east, Math.cos(arc) - Math.sin(phi) * Math.sin(end));
  return { lat: (end * 180) / Math.PI, lon: (((lon * Math.PI) / 180 + turn) * 180) / Math.PI };
}

const calls = {
  "noise of Location Guard": [200000, locationGuard],
  "obfuscate": [200000, () => geoind.obfuscate({ lat, lon, epsilon })],
  "obfuscate with a key": [200000, (i) => geoind.obfuscate({ lat, lon, epsilon, key, label: i })],
  "a report in ball arithmetic": [4000, () => slow.sample(lon, lat, words)],
  "a step of a session that stays": [100000, (i) => session.report({ lat, lon, time: i })],
  "a mechanism of 400 sites": [50000, () => geoind.obfuscate({ lat, lon, mechanism })],
  "a mechanism of 400 sites, with a key": [50000, (i) => geoind.obfuscate({ lat, lon, mechanism, key, label: i })],
  "reading the file of 400 sites": [20, () => new geoind.Interpolated(text)],
  "SamePlace": [20000, (i) => places.obfuscate({ lat: lat + 1e-5 * (i % 100), lon, epsilon, person: "ana" })],
};
const found = {};
for (const [name, [count, call]] of Object.entries(calls)) {
  for (let i = 0; i < count / 10; i += 1) call(i);
  const before = process.cpuUsage().user;
  for (let i = 0; i < count; i += 1) call(count + i);
  found[name] = (process.cpuUsage().user - before) / count;
}
console.log(JSON.stringify(found));
"""

ERRORS = """
const functions = await import(FOLDER + "src/functions.js");
const uniform = () => Math.random();
const cases = {
  log: () => [2 ** (-22 * uniform())], sqrt: () => [40 * uniform()],
  atan2: () => [uniform() - 0.5, uniform() - 0.5],
  cosSin: () => [1.5 * uniform()],
};
console.log(JSON.stringify(Object.entries(cases).flatMap(([name, draw]) => Array.from({ length: 20000 }, () => {
  const given = draw();
  return [name, given, [functions[name](...given)].flat()];
}))));
"""


def run(script: str) -> str:
    """Return what a script prints in Node."""
    with tempfile.TemporaryDirectory() as folder:
        city = Path(folder, "city.json")
        grid = Grid(-950, -950, cell=100, columns=20, rows=20)
        noise = Interpolated(exponential(grid, grid, epsilon=0.005))
        save_mechanism(city, Projected(noise, Projection(2.2945, 48.8584)))
        program = f"const [FOLDER, CITY] = {json.dumps([DEVICE.as_uri() + '/', str(city)])};{script}"
        command = ["node", "--input-type=module", "-e", program]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def times() -> str:
    """Return the table of processor time per call."""
    found = json.loads(run(TIMES))
    rows = [
        f"| {name} | {cost:.1f} | {cost / found[BASELINE]:.1f} |"
        for name, cost in sorted(found.items(), key=lambda item: item[0] != BASELINE)
    ]
    head = f"| call | microseconds of processor time | times the {BASELINE} |\n| --- | ---: | ---: |\n"
    return head + "\n".join(rows)


def errors() -> str:
    """Return the largest errors of the functions, in units of 2^-53 of the value."""
    exact: dict[str, Any] = {
        "log": lambda x: [arb(x).log()],
        "sqrt": lambda x: [arb(x).sqrt()],
        "atan2": lambda y, x: [arb.atan2(arb(y), arb(x))],
        "cosSin": lambda x: arb(x).sin_cos()[::-1],
    }
    worst: dict[str, float] = {}
    with ctx.workprec(200):
        for name, given, found in json.loads(run(ERRORS)):
            for value, wanted in zip(found, exact[name](*given), strict=True):
                off = abs(float((arb(value) - wanted) / wanted)) * 2.0**53
                worst[name] = max(worst.get(name, 0.0), off)
    rows = [f"| `{name}` | {off:.2f} |" for name, off in worst.items()]
    return "| function | largest error, in 2^-53 of the value |\n| --- | ---: |\n" + "\n".join(rows)


def size() -> str:
    """Return the size of the module as a sentence."""
    esbuild = ROOT / "node_modules" / ".bin" / "esbuild"
    minified = subprocess.run([esbuild, "--minify", DEVICE / "geoind.js"], capture_output=True, check=True).stdout
    return f"The module has {len(minified)} bytes minified, {len(gzip.compress(minified, 9))} of them compressed."


def main() -> None:
    """Print the tables and write the page."""
    version = subprocess.run(["node", "--version"], capture_output=True, check=True, text=True).stdout.strip()
    page = [
        "# The module for devices",
        f"Written by `python3 dev.py bench device`, Node {version}, one thread.",
        times(),
        f"Of 20 000 random arguments each:\n\n{errors()}",
        size(),
    ]
    text = "\n\n".join(page) + "\n"
    print(text)
    OUT.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
