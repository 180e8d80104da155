"""What a notebook shows of a value: its title, a few facts, and a small picture."""

import base64
from collections.abc import Mapping
from html import escape

__all__ = ["card"]


def card(title: str, facts: Mapping[str, object], picture: bytes | None = None) -> str:
    """Return a piece of HTML: the title, a row for each fact, and a PNG beside them.

    Examples
    --------
    >>> card("Prior", {"sites": 2})
    '<div><b>Prior</b><table><tr><td>sites</td><td>2</td></tr></table></div>'
    """
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(str(fact))}</td></tr>" for name, fact in facts.items())
    text = f"<div><b>{escape(title)}</b><table>{rows}</table></div>"
    if picture is None:
        return text
    image = base64.b64encode(picture).decode()
    return (
        '<div style="display:flex;gap:1em;align-items:flex-start">'
        f'<img alt="" style="width:12em;image-rendering:pixelated" src="data:image/png;base64,{image}">'
        f"{text}</div>"
    )
