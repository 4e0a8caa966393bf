"""Write service/docs/http.md from the OpenAPI document of the service.

    .venv/bin/python scripts/write_http.py

`service/tests/test_app.py` fails if the page is not what this writes.
"""

from pathlib import Path
from typing import Any

from evenhand_service.app import make_api
from evenhand_service.ledger.decision_draw import NAMED, PRINTABLE
from evenhand_service.problems import PROBLEMS

PAGE = Path(__file__).resolve().parents[1] / "service" / "docs" / "http.md"
SECTIONS = {
    "deciding": "Deciding",
    "outcomes": "Outcomes, groups and overrides",
    "looking": "Looking",
    "operating": "Operating",
}
"""The tags of the routes, in the order of the page."""
HEAD = """\
# The HTTP interface

<!-- written by scripts/write_http.py from the OpenAPI document of the service -->

Every route, written from the OpenAPI document that the service gives at `GET /openapi.json`.
`evenhand_service.client` is a client for Python, in one file without dependencies.

- **Key.** `Authorization: Bearer eh_...`, with the scope that the route names; without a valid key
  401, without the scope 403.
- **Bodies** are JSON in UTF-8, sent as `Content-Type: application/json`. Unknown fields raise an
  error (422), as does a member that stands there twice (400). A name is 1 to 200 printable
  characters in Unicode's normal form C, without blanks around them.
- **Repeating is safe.** A decision that is asked for again under its `key` is the same bytes, with
  `Evenhand-Replayed: true`; the same key with another body is 409. A report that comes again is
  `"result": "repeated"`.
- **Errors** are problem documents (RFC 9457, `application/problem+json`): `type`, `title`,
  `status`, `detail`, mostly `hint`, and for a field `field` and `requirement`; `errors` lists the
  first 20. After 429 and 503, wait (`Retry-After` where it is given) and repeat.
- Every answer carries `X-Request-Id`, which stands in the log of the service.

"""


def page() -> str:
    """The text of the page."""
    document = make_api().openapi()
    schemas = document["components"]["schemas"]
    parts = [HEAD]
    for tag, title in SECTIONS.items():
        parts.append(f"## {title}\n\n")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if operation["tags"] == [tag]:
                    parts.append(_operation(method.upper(), path, operation, schemas))
    parts.append("## Answers\n\n")
    parts += [
        f"### {name}\n\n{_words(schemas[name])}\n\n{_table(schemas[name], schemas)}\n"
        for name in ("DecisionResponse", "ProblemDocument")
    ]
    parts.append("## Kinds of problems\n\n| `type` ends with | status | title |\n|---|---|---|\n")
    parts += [f"| `{kind}` | {status} | {title} |\n" for kind, (status, title) in PROBLEMS.items()]
    return "".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    """One route: what it is for, what it needs, what it takes, and what it answers."""
    scopes = [scope for one in operation.get("security", []) for scope in one["key"]]
    needs = f"Scope `{scopes[0]}`." if scopes else "No key."
    text = [f"### {method} {path}\n\n{_words(operation)}\n\n{needs}"]
    queries = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    if queries:
        text.append(f" Query: {', '.join(f'`{name}`' for name in queries)}.")
    special = [status for status in operation["responses"] if status in ("404", "409", "410")]
    if special:
        text.append(f" Besides the usual problems: {', '.join(special)}.")
    text.append("\n\n")
    body = operation.get("requestBody")
    if body is not None:
        name = body["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        schema = schemas[name]
        text.append(f"`{name}`: {_words(schema)}\n\n{_table(schema, schemas)}\n")
    return "".join(text)


def _words(described: dict[str, Any]) -> str:
    return " ".join(described.get("description", "").split())


def _table(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """The fields of an object."""
    required = schema.get("required", [])
    rows = ["| field | value | |\n|---|---|---|\n"]
    for name, field in schema["properties"].items():
        default = field.get("default")
        needed = "required" if name in required else ""
        if not needed and default not in (None, ""):
            needed = f"default {default:g}" if isinstance(default, float) else f"default {default}"
        rows.append(f"| `{name}` | {_value(field, schemas)} | {needed} |\n")
    return "".join(rows)


def _value(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        inner = schemas[name]["properties"]
        fields = ", ".join(f"`{one}`: {_value(inner[one], schemas)}" for one in inner)
        return f"object of {fields}" if len(inner) < 3 else f"`{name}`"
    if "anyOf" in schema:
        return ", or ".join(_value(one, schemas) for one in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    match schema["type"]:
        case "array":
            return f"list{_sizes(schema, 'Items')} of ({_value(schema['items'], schemas)})"
        case "object":
            size = _sizes(schema, "Properties")
            return f"object{size}, by name, of ({_value(schema['additionalProperties'], schemas)})"
        case "string":
            pattern = schema.get("pattern", "")
            if pattern == NAMED:
                return "name"
            if pattern.startswith("^[0-9a-f]"):
                return "64 hexadecimal digits"
            return f"{'printable ' * (pattern == PRINTABLE)}text{_sizes(schema, 'Length')}"
        case "number" | "integer" as kind:
            return f"{'number' if kind == 'number' else 'whole number'}{_bounds(schema)}"
        case kind:
            return {"boolean": "true, or false", "null": "null"}[kind]


def _sizes(schema: dict[str, Any], what: str) -> str:
    least = schema.get(f"min{what}", 0)
    most = schema.get(f"max{what}")
    if most is None:
        return ""
    return f" (at most {most:,})" if least == 0 else f" ({least} to {most:,})"


def _bounds(schema: dict[str, Any]) -> str:
    words = (
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
    )
    told = [
        f"{word} {'2^53' if schema[name] == 2**53 else format(schema[name], 'g')}"
        for name, word in words
        if abs(schema.get(name, 1e300)) < 1e300 and schema[name] != -(2**53)
    ]
    return f" ({', '.join(told)})" if told else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
