"""The HTML representation of a value in a notebook: a title, a few facts, and a thumbnail."""

import base64
from collections.abc import Mapping

from geoind.pictures.page import fill

__all__ = ["card"]

FACTS = (
    "<div><b>{{ title }}</b><table>"
    "{% for name, fact in facts.items() %}<tr><td>{{ name }}</td><td>{{ fact }}</td></tr>{% endfor %}"
    "</table></div>"
)
WITH_PICTURE = (
    '<div style="display:flex;gap:1em;align-items:flex-start">'
    '<img alt="" style="width:12em;image-rendering:pixelated" src="data:image/png;base64,{{ image }}">'
    "{{ text }}</div>"
)


def card(title: str, facts: Mapping[str, object], picture: bytes | None = None) -> str:
    """Return HTML with the title, a row for each fact, and a PNG to their left.

    Examples
    --------
    >>> print(card("Prior", {"sites": 2}))
    <div><b>Prior</b><table><tr><td>sites</td><td>2</td></tr></table></div>
    """
    # A fact is shown as text, even if it is `Markup`.
    text = fill(FACTS, title=title, facts={name: str(fact) for name, fact in facts.items()})
    if picture is None:
        return str(text)
    return str(fill(WITH_PICTURE, text=text, image=base64.b64encode(picture).decode()))
