"""Make `geoind.js`, an ES module, and `geoind.classic.js`, a script for pages opened from a disk, from `src/`.

Both are the modules of `src/` in the order of their imports. `python3 -m webdemo.device.build` writes them; a test
compares them.
"""

from pathlib import Path

from ..scripts import bundle

__all__ = ["bundles"]

MADE = "// Made by webdemo/device/build.py from webdemo/device/src: change that.\n"


def bundles() -> dict[str, str]:
    """Return the text of both files by their names."""
    [*parts, about], exported = bundle("device/src/index.js")
    body = "\n".join(parts)
    names = ",\n  ".join(exported)
    exports = f"{{\n  {names},\n}};\n"
    return {
        "geoind.js": f"{MADE}\n{about}\n{body}\nexport {exports}",
        "geoind.classic.js": (
            f'{MADE}\n{about}\nvar geoind = (() => {{\n"use strict";\n\n{body}\nreturn {exports}}})();\n'
        ),
    }


if __name__ == "__main__":
    for file, text in bundles().items():
        (Path(__file__).parent / file).write_text(text, "utf-8")
