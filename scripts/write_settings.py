"""Write service/docs/settings.md from the docstrings of the settings.

    .venv/bin/python scripts/write_settings.py

`service/tests/test_settings.py` fails if the page is not what this writes.
"""

import inspect
import re
from dataclasses import MISSING, Field, fields
from pathlib import Path

from evenhand_service.settings import Product, Settings

PAGE = Path(__file__).resolve().parents[1] / "service" / "docs" / "settings.md"
ESSENTIAL = {
    "[[product]]": (
        "name",
        "features",
        "class",
        "rates",
        "limit",
        "delta",
        "maturity_days",
        "fallback",
    ),
    "[service]": ("ledger", "keyring", "behind_proxy", "proxy_addresses", "allowed_hosts"),
    "[[witness]]": ("kind", "path"),
}
"""What anybody must know who runs a service; the rest has defaults that are right for most."""
WITNESS = {
    "kind": ("", 'Where signed heads go: "file" or "https".'),
    "path": ("", 'For "file": the file to which lines are appended, beside the settings.'),
    "url": ("", 'For "https": where each entry is posted.'),
    "headers": (
        "{}",
        'For "https": headers of the request; "$NAME" is taken from the environment.',
    ),
    "name": ("the kind", "The name in metrics and logs; needed if there are two of one kind."),
}
HEAD = """\
# Settings

<!-- written by scripts/write_settings.py from the docstrings of evenhand_service.settings -->

One TOML file, given as `--config`. Relative paths are relative to it. `evenhand serve --config FILE
--check` tries it; an unknown setting, or one that breaks its requirement, raises an error that
names it. [Your first service](first-service.md) and [production](production.md) show whole files.

"""


def described(record: type) -> dict[str, str]:
    """What the docstring says of each parameter, in one line each."""
    text = inspect.cleandoc(record.__doc__ or "").split("Parameters\n----------\n")[1]
    text = text.split("\n\nRaises")[0]
    found = {}
    for names, words in re.findall(r"^(\S.*?) : .*\n((?: {4}.*\n?|\n)+)", text, re.M):
        for name in names.split(", "):
            found[name] = " ".join(words.split())
    return found


def default_of(field: "Field[object]") -> str:
    """The default as TOML would have it; empty where there is none."""
    value = field.default
    if value is MISSING:
        return ""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{one}"' for one in value) + "]"
    # as people write it: whole numbers without a fraction, and no exponent
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def tables() -> dict[str, dict[str, tuple[str, str]]]:
    """Part of the file -> setting -> (default, meaning)."""
    found = {}
    for part, record in (("[[product]]", Product), ("[service]", Settings)):
        meanings = described(record)
        renamed = {"hypotheses": "class"}
        found[part] = {
            renamed.get(field.name, field.name): (default_of(field), meanings[field.name])
            for field in fields(record)
            if field.name not in ("products", "witnesses")  # parts of the file by themselves
        }
    return {**found, "[[witness]]": WITNESS}


def table(rows: dict[str, tuple[str, str]]) -> str:
    """A table of Markdown."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for name, (default, meaning) in rows.items():
        shown = f"`{default}`" if default else "to be given"
        lines.append(f"| `{name}` | {shown} | {meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    known = tables()
    number = sum(map(len, ESSENTIAL.values()))
    parts = [HEAD, f"## The {number} that anybody must know\n\n"]
    for part, names in ESSENTIAL.items():
        parts.append(
            f"### `{part}`\n\n" + table({name: known[part][name] for name in names}) + "\n"
        )
    parts.append("## Appendix: all others\n\nTheir defaults are right for most services.\n\n")
    for part, rows in known.items():
        others = {name: row for name, row in rows.items() if name not in ESSENTIAL[part]}
        parts.append(f"### `{part}`, the others\n\n" + table(others) + "\n")
    return "".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Written: {PAGE}")
