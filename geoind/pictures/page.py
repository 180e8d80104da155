"""HTML from fixed templates: values are escaped, and a page runs only its own scripts."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["content_policy", "fill", "html_page", "script_json"]

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{{ title }}</title>
{% for style in styles %}
<style>{{ style }}</style>
{% endfor %}
</head>
<body>
{{ body }}
{% for script in scripts %}
<script>{{ script }}</script>
{% endfor %}
</body>
</html>
"""

CLOSED = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
"""Part of every policy: everything that is not listed is forbidden."""

ENDS_EARLY = re.compile(r"</(?:script|style)|<!--", re.IGNORECASE)
"""Text that ends a script or a style early, or makes a browser read past its end."""


def fill(template: str, **values: object) -> Markup:
    """Return a template with its variables replaced by escaped values.

    Parameters
    ----------
    template : str
        A constant of the program, a Jinja2 template; never data.
    **values
        Text is escaped; `Markup`, the result of another template, is not.

    Examples
    --------
    >>> fill("<b>{{ name }}</b>", name="<{{ 7 * 7 }}>")
    Markup('<b>&lt;{{ 7 * 7 }}&gt;</b>')
    """
    return Markup(_encodable(_compiled(template).render(values)))


def html_page(
    title: str,
    body: Markup,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    style_attributes: bool = False,
) -> str:
    """Return a page that loads nothing and runs only these scripts.

    Its Content-Security-Policy allows the given scripts and styles by their hashes. A script that enters the page
    in another way, as an element or an attribute, does not run.

    Parameters
    ----------
    title : str
        Title of the page; escaped.
    body : Markup
        A result of `fill`.
    styles, scripts : sequence of str
        Parts of the program. Data in a script must come from `script_json`.
    style_attributes : bool
        Allow `style` attributes.

    Examples
    --------
    >>> page = html_page("1 < 2", fill("<p>{{ words }}</p>", words="<script>alert(1)</script>"))
    >>> "<title>1 &lt; 2</title>" in page, "<script" in page, "default-src &#39;none&#39;" in page
    (True, False, True)
    """
    parts = {kind: [_part(text) for text in texts] for kind, texts in (("style", styles), ("script", scripts))}
    sources = {f"{kind}-src": " ".join(map(_hash, texts)) for kind, texts in parts.items() if texts}
    if style_attributes:
        sources["style-src-attr"] = "'unsafe-inline'"
    policy = content_policy({**sources, "img-src": "data:"})
    return str(fill(PAGE, title=title, body=body, policy=policy, styles=parts["style"], scripts=parts["script"]))


def content_policy(sources: Mapping[str, str]) -> str:
    """Return a Content-Security-Policy that allows these sources and nothing else.

    Examples
    --------
    >>> content_policy({"img-src": "data:"})
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:"
    """
    return "; ".join(f"{name} {value}" for name, value in {**CLOSED, **sources}.items())


def script_json(value: Any) -> str:
    r"""Return a value as JSON that is safe inside a script: no text in it ends the script or the line.

    Examples
    --------
    >>> script_json({"name": "</script>\u2028&"})
    '{"name":"\\u003c/script\\u003e\\u2028\\u0026"}'
    """
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _compiled(template: str) -> "Template":
    # Imported here, because `import geoind` must be fast.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template)


def _part(text: str) -> Markup:
    if ENDS_EARLY.search(text):
        raise InvalidInputError("a script or a style of a page must not contain '</script', '</style' or '<!--'")
    # A browser hashes the parsed text, in which line ends are LF and NUL is U+FFFD.
    return Markup(_encodable(text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _encodable(text: str) -> str:
    """Return the text without lone surrogates, which file names and JSON may contain but UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
