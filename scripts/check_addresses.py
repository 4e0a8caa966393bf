"""Ends with 1 unless pyproject.toml has the public addresses: nothing is published without them.

python scripts/check_addresses.py
"""

import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

NEEDED = ("Homepage", "Documentation", "Source", "Issues", "Changelog")
NOWHERE = (".invalid", ".example")
"""Domains that lead nowhere (RFC 2606)."""


def wrong(urls: dict[str, str]) -> list[str]:
    """What is missing, or cannot be an address."""
    faults = []
    for name in NEEDED:
        address = urlsplit(urls.get(name, ""))
        if address.scheme != "https" or not address.netloc or address.netloc.endswith(NOWHERE):
            faults.append(f"{name} is {urls.get(name)!r}; it must be a public address with https.")
    return faults


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    faults = wrong(project.get("urls", {}))
    if faults:
        print("pyproject.toml, [project.urls]:", *faults, sep="\n  ")
    sys.exit(bool(faults))
