"""The browser extension as an unpacked folder, for Chromium-based browsers and for Firefox."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from geoind import __version__

from .folders import write_folder

__all__ = ["extension_files", "write_extension"]

HERE = files(__package__)

PAGES = ["http://*/*", "https://*/*"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""No page of the extension can send a request to any server."""


def manifest(browser: str) -> dict[str, Any]:
    """Return the manifest of the extension for a browser, "chromium" or "firefox"."""
    every_frame = {
        "matches": PAGES,
        "all_frames": True,
        "match_origin_as_fallback": True,
        "run_at": "document_start",
    }
    common = {
        "manifest_version": 3,
        "name": "geoind: approximate location",
        "description": "Pages get a report with a proven privacy guarantee, and never your location.",
        "version": __version__.partition("+")[0],
        "icons": {"128": "icon.png"},
        "action": {"default_popup": "popup.html", "default_title": "geoind: what this page sees of your location"},
        "options_ui": {"page": "options.html", "open_in_tab": True},
        "content_scripts": [
            {**every_frame, "js": ["gate.js"]},
            {**every_frame, "js": ["page.js", "element.js"], "world": "MAIN"},
        ],
        "content_security_policy": {"extension_pages": POLICY},
        # A private window would share sessions, and so reports, with the others.
        "incognito": "not_allowed",
    }
    if browser == "chromium":
        return {
            **common,
            "minimum_chrome_version": "116",
            "permissions": ["activeTab", "contentSettings", "geolocation", "offscreen", "storage"],
            "background": {"service_worker": "background.js", "type": "module"},
        }
    return {
        **common,
        "permissions": ["activeTab", "geolocation", "storage"],
        "background": {"scripts": ["background.js"], "type": "module"},
        "browser_specific_settings": {"gecko": {"id": "geoind@geoind.invalid", "strict_min_version": "128.0"}},
    }


def extension_files(browser: str) -> dict[str, bytes]:
    """Return the files of the extension by name; all of them are in one folder."""
    parts = {item.name: item.read_bytes() for item in HERE.joinpath("extension").iterdir() if item.is_file()}
    if browser == "firefox":
        # Its background page sees the position itself.
        del parts["offscreen.html"], parts["offscreen.js"]
    parts["geoind.js"] = HERE.joinpath("device/geoind.js").read_bytes()
    parts["manifest.json"] = json.dumps(manifest(browser), indent=2).encode()
    return parts


def write_extension(folder: Path, browser: str) -> list[Path]:
    """Write the extension into a new or empty folder and return its files."""
    return write_folder(folder, lambda: extension_files(browser), "--out")
