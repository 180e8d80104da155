"""JavaScript in Node."""

import json
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DEVICE = Path(__file__).parents[3] / "webdemo" / "device"

Script = Callable[..., Any]
"""From the body of a function of `given`, and what is given, to what it returns; `source` imports a module."""

RUN = """
import { readFileSync, writeFileSync } from "node:fs";
const source = (name) => import(FOLDER + "src/" + name + ".js");
const geoind = await import(FOLDER + "geoind.js");
const { script, given } = JSON.parse(readFileSync(0, "utf8"));
const run = Object.getPrototypeOf(async () => {}).constructor("geoind", "source", "given", script);
writeFileSync(1, JSON.stringify(await run(geoind, source, given) ?? null));
"""


@pytest.fixture(scope="session")
def node() -> str:
    """The command of Node."""
    command = shutil.which("node")
    if command is None:
        warnings.warn("node is not on this machine: no JavaScript was tested in it", stacklevel=1)
        pytest.skip("node is not on this machine: no JavaScript was tested in it")
    return command


@pytest.fixture(scope="session")
def script(node: str) -> Script:
    """A function that runs JavaScript in Node."""

    def run(text: str, given: object = None) -> Any:
        program = f"const FOLDER = {json.dumps(DEVICE.as_uri() + '/')};{RUN}"
        done = subprocess.run(
            [node, "--input-type=module", "-e", program],
            input=json.dumps({"script": text, "given": given}),
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
