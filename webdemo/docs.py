"""The documentation of the API as a plain page, made from the OpenAPI schema, without scripts."""

import json
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse

from geoind.pictures.page import fill

__all__ = ["docs_router"]

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>geoind demo: the API</title><link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/docs.css"><script src="/static/js/theme.js"></script></head>
<body><main><p><a href="/">Back to the map</a></p><h1>The API</h1>
<p>All questions are POSTed as JSON, so that no address and no log holds a location. Bad parameters get a 4xx
and a sentence. The schema: <a href="/openapi.json">openapi.json</a>.</p>
{% macro table(rows) %}
<table><tbody>
{% for name, kind, limits, description in rows %}
<tr><th><code>{{ name }}</code></th><td>{{ kind }}</td><td>{{ limits }}</td><td>{{ description }}</td></tr>
{% endfor %}
</tbody></table>
{% endmacro %}
{% for operation in operations %}
<section><h2><code>{{ operation.method }} {{ operation.path }}</code></h2>
<p>{{ operation.description }}</p>
{% if operation.asked %}
<h3>Ask</h3>
{{ table(operation.asked) }}
<pre>{{ operation.example }}</pre>
{% endif %}
<h3>Answer</h3>
{{ table(operation.answer) }}
</section>
{% endfor %}
</main></body></html>
"""


def docs_router(app: FastAPI) -> APIRouter:
    """Return the page of the application's own schema."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    def docs() -> HTMLResponse:
        schema = app.openapi()
        operations = [
            _operation(schema, method, path, operation)
            for path, methods in schema["paths"].items()
            for method, operation in methods.items()
        ]
        return HTMLResponse(fill(PAGE, operations=operations))

    return router


def _operation(schema: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    described = {
        "method": method.upper(),
        "path": path,
        "description": operation.get("description", operation["summary"]),
        "asked": [],
        "answer": _rows(schema, _resolved(schema, answer)),
    }
    if "requestBody" in operation:
        asked = _resolved(schema, operation["requestBody"]["content"]["application/json"]["schema"])
        example = {name: _example(part) for name, part in asked["properties"].items() if name != "seed"}
        described |= {"asked": _rows(schema, asked), "example": json.dumps(example, indent=2)}
    return described


def _resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    found: dict[str, Any] = schema["components"]["schemas"][part["$ref"].rsplit("/", 1)[1]]
    return found


def _rows(schema: dict[str, Any], described: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    return [
        (name, _kind(schema, part), _limits(part), part.get("description", ""))
        for name, part in described.get("properties", {}).items()
    ]


def _kind(schema: dict[str, Any], part: dict[str, Any]) -> str:
    if "anyOf" in part:
        return " or ".join(_kind(schema, choice) for choice in part["anyOf"])
    if "$ref" in part:
        return "{" + ", ".join(_resolved(schema, part).get("properties", {})) + "}"
    if part.get("type") == "array":
        return (
            f"list of {_kind(schema, part['items'])}" if "items" in part else f"{part.get('minItems', '')} numbers"
        )
    return str(part.get("type", part.get("const", "")))


def _limits(part: dict[str, Any]) -> str:
    if "enum" in part:
        return " | ".join(part["enum"])
    low, high = part.get("minimum"), part.get("maximum")
    limits = f"{low:g} to {high:g}" if low is not None and high is not None else ""
    default = f"default {part['default']}" if part.get("default") is not None else ""
    return ", ".join(filter(None, [limits, default]))


def _example(part: dict[str, Any]) -> Any:
    if "default" in part:
        return part["default"]
    if part.get("type") == "array":
        return [{"lat": 60.1699, "lon": 24.9384}, {"lat": 60.1708, "lon": 24.9414}]
    if part.get("type") == "string":
        return "anna0001"
    return 60.1699 if "atitude" in part.get("description", "") else 24.9384
