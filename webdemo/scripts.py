"""One script out of ES modules, for pages that are opened from a disk: a browser loads no module from there."""

import posixpath
import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

__all__ = ["Bundle", "bundle"]

IMPORT = re.compile(r'^(?:import|export) \{([^}]*)\} from "(\.[\w./]+\.js)";\n', re.MULTILINE)
"""A statement such as `import { a, b } from "./c.js";`: the only form that the sources use."""
TYPE_ALIAS = re.compile(r'^/\*\* @typedef \{import\("[\w./]+\.js"\)\.\w+\} \w+ \*/\n', re.MULTILINE)
TYPE_IMPORT = re.compile(r'import\("[\w./]+\.js"\)\.')
EXPORT = re.compile(r"^export (?=\w)", re.MULTILINE)

Bundle = tuple[list[str], list[str]]
"""The texts of modules, the first module last, and the names that it exports from others."""


def bundle(entry: str, *, ready: Mapping[str, str] = MappingProxyType({})) -> Bundle:
    """Return a module and the modules that it imports as texts without imports and exports.

    Parameters
    ----------
    entry : str
        A file of this package, such as `static/story/story.js`.
    ready : mapping
        Modules that another script has loaded already, each with the JavaScript expression for its exports.
    """
    texts: dict[str, str] = {}
    used: dict[str, set[str]] = {}

    def visit(name: str) -> None:
        text = files(__package__).joinpath(name).read_text("utf-8")
        for names, wanted in IMPORT.findall(text):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), wanted))
            if path in ready:
                used.setdefault(ready[path], set()).update(_names(names))
            elif path not in texts:
                visit(path)
        texts[name] = text

    visit(entry)
    exported = [name for names, _ in IMPORT.findall(texts[entry]) for name in _names(names)]
    parts = [f"const {{ {', '.join(sorted(names))} }} = {exports};\n" for exports, names in used.items()]
    parts += map(_inlined, texts.values())
    return parts, sorted(exported)


def _names(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _inlined(text: str) -> str:
    return TYPE_IMPORT.sub("", EXPORT.sub("", TYPE_ALIAS.sub("", IMPORT.sub("", text)))).strip() + "\n"
