"""The JavaScript of the documentation runs."""

import re
import subprocess
from pathlib import Path

from geoind import Grid, Projected, Projection, exponential
from geoind.channels import Interpolated
from geoind.files import save_mechanism

from .conftest import DEVICE

DOCS = Path(__file__).parents[3] / "docs"


def test_the_examples_of_the_pages_run_one_after_the_other(node: str, tmp_path: Path) -> None:
    grid = Grid(-600, -600, cell=300, columns=5, rows=5)
    mechanism = Interpolated(exponential(grid, grid, epsilon=0.002))
    save_mechanism(tmp_path / "city.json", Projected(mechanism, Projection(2.35, 48.86)))
    pages = [page for page in sorted(DOCS.glob("*.md")) if "```javascript" in page.read_text("utf-8")]
    assert [page.name for page in pages] == ["device.md"]
    for page in pages:
        blocks = re.findall(r"^```javascript\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        program = "\n".join(blocks).replace('from "geoind"', f'from "{(DEVICE / "geoind.js").as_uri()}"')
        command = [node, "--input-type=module", "-e", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
        assert done.returncode == 0, done.stderr
        shown = done.stdout.split("\n")
        assert shown[0] == "692 m"
        # The session's budget ends before its day does.
        assert 0 <= float(shown[1]) < 0.05
