"""Ends with 1 unless the public addresses are there: nothing is published without them.

They are [project.urls], in the pyproject.toml of the library and in that of the service, and the
contact in SECURITY.md.

    python scripts/check_addresses.py
"""

import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("Homepage", "Documentation", "Source", "Issues", "Changelog")
NOWHERE = (".invalid", ".example")
"""Domains that lead nowhere (RFC 2606)."""
CONTACT = re.compile(r"<(?:https://[^\s<>]+|[^\s<>@]+@[^\s<>@]+)>")
"""An address or an e-mail address, as Markdown shows it: in angle brackets."""


def wrong(urls: dict[str, str]) -> list[str]:
    """What is missing, or cannot be an address."""
    faults = []
    for name in NEEDED:
        address = urlsplit(urls.get(name, ""))
        if address.scheme != "https" or not address.netloc or address.netloc.endswith(NOWHERE):
            faults.append(f"{name} is {urls.get(name)!r}; it must be a public address with https.")
    return faults


def wrong_contact(security: str) -> list[str]:
    """What SECURITY.md lacks for somebody who wants to report a weakness."""
    if CONTACT.search(security):
        return []
    return ["SECURITY.md has no contact: an address or an e-mail address in angle brackets."]


def all_wrong(root: Path) -> list[str]:
    """What is missing in a checkout."""
    library, service = (
        tomllib.loads((root / name).read_text(encoding="utf-8"))["project"].get("urls", {})
        for name in ("pyproject.toml", "service/pyproject.toml")
    )
    faults = [f"pyproject.toml, [project.urls]: {fault}" for fault in wrong(library)]
    if service != library:
        faults.append("service/pyproject.toml has other [project.urls] than pyproject.toml.")
    return faults + wrong_contact((root / "SECURITY.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit("\n".join(all_wrong(ROOT)) or None)
