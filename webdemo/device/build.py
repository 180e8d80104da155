"""Make `geoind.js`, an ES module, and `geoind.classic.js`, a script for pages opened from a disk, from `src/`.

Both are the modules of `src/` in the order of their imports, without the imports. `python -m webdemo.device.build`
writes them; a test compares them.
"""

import re
from pathlib import Path

__all__ = ["bundles"]

HERE = Path(__file__).parent
IMPORT = re.compile(r'^(?:import|export) \{([^}]*)\} from "\./(\w+\.js)";\n', re.MULTILINE)
"""A statement such as `import { a, b } from "./c.js";`: the only form that the sources use."""
TYPE_ALIAS = re.compile(r'^/\*\* @typedef \{import\("\./\w+\.js"\)\.\w+\} \w+ \*/\n', re.MULTILINE)
TYPE_IMPORT = re.compile(r'import\("\./\w+\.js"\)\.')
MADE = "// Made by webdemo/device/build.py from webdemo/device/src: change that.\n"


def bundles() -> dict[str, str]:
    """Return the text of both files by their names."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for _, wanted in IMPORT.findall((HERE / "src" / name).read_text("utf-8")):
                visit(wanted)
            order.append(name)

    visit("index.js")
    index = (HERE / "src" / "index.js").read_text("utf-8")
    exported = sorted({name.strip() for names, _ in IMPORT.findall(index) for name in names.split(",")})
    about = IMPORT.sub("", index).strip()
    body = "\n".join(_inlined(name) for name in order[:-1])
    names = ",\n  ".join(exported)
    classic = f'var geoind = (() => {{\n"use strict";\n\n{body}\nreturn {{\n  {names},\n}};\n}})();\n'
    return {
        "geoind.js": f"{MADE}\n{about}\n\n{body}\nexport {{\n  {names},\n}};\n",
        "geoind.classic.js": f"{MADE}\n{about}\n\n{classic}",
    }


def _inlined(name: str) -> str:
    text = TYPE_ALIAS.sub("", IMPORT.sub("", (HERE / "src" / name).read_text("utf-8")))
    return TYPE_IMPORT.sub("", re.sub(r"^export (?=\w)", "", text, flags=re.MULTILINE)).strip() + "\n"


if __name__ == "__main__":
    for file, text in bundles().items():
        (HERE / file).write_text(text, "utf-8")
