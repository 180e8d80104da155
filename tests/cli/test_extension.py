"""`geoind extension`: an unpacked folder for each browser."""

import json
import re
from pathlib import Path

import pytest

from geoind import __version__
from geoind.cli import main
from webdemo.extension_build import extension_files


@pytest.mark.parametrize("target", ["chromium", "firefox"])
def test_the_folder_is_complete(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "of" / "mine"
    assert main(["extension", "--out", str(folder), "--browser", target]) == 0
    assert str(folder) in capsys.readouterr().out
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["manifest_version"], manifest["version"]) == (3, __version__)
    named = [*re.findall(r'"([\w.]+\.(?:js|html|png))"', json.dumps(manifest))]
    for file in folder.iterdir():
        if file.suffix in {".js", ".html"}:
            named += re.findall(r'(?:from|import|src=|href=)[ (]?"(?:\./)?([\w.]+\.\w+)"', file.read_text("utf-8"))
    assert len(named) > 20
    for name in named:
        assert folder.joinpath(name).is_file(), name


def test_only_chromium_has_what_firefox_lacks() -> None:
    manifests = {name: json.loads(extension_files(name)["manifest.json"]) for name in ("chromium", "firefox")}
    lacking = {"contentSettings", "offscreen"}
    assert {*manifests["chromium"]["permissions"]} - {*manifests["firefox"]["permissions"]} == lacking
    for manifest in manifests.values():
        # No server can be asked, no page can load a part of the extension, and no site is read.
        assert "connect-src 'none'" in manifest["content_security_policy"]["extension_pages"]
        assert not {"web_accessible_resources", "externally_connectable", "host_permissions"} & {*manifest}
        for script in manifest["content_scripts"]:
            assert script["all_frames"]
            assert script["match_origin_as_fallback"]
            assert script["run_at"] == "document_start"


def test_the_extension_has_no_noise_of_its_own() -> None:
    for name, content in extension_files("chromium").items():
        if name.endswith(".js") and name != "geoind.js":
            assert not re.search(rb"Math\.random|fetch\(|XMLHttpRequest|WebSocket|\beval\(", content), name


def test_a_folder_with_files_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extension", "--out", str(Path(__file__).parent)]) == 2
    assert "must be a new or an empty folder" in capsys.readouterr().err
