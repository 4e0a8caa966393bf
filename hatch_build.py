"""What a package index shows: the README, with links that work without the repository.

In a checkout README.md links to the files beside it. An index has no such files, so the links of
the published metadata lead to the addresses in [project.urls]: pages of docs/ to the documentation,
pictures and all other files to the source at the tag of this version. As long as there are no
addresses, links become plain text and pictures are left out. The service is built by itself, and
has a copy of this file.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<opening>!?\[[^\]]*\]\()(?P<target>[^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#")
OFF_THE_SITE = ("docs/decisions/", "docs/notes/")
FOLDERS = {"evenhand": "", "evenhand-service": "service"}
"""Where the README of a distribution stands in the checkout."""


def on_an_index(text: str, urls: dict[str, str], version: str, folder: str = "") -> str:
    """The README of a folder with every link to a file of the checkout turned into an address."""

    def address(found: re.Match[str]) -> str:
        opening, target = found["opening"], found["target"]
        path, mark, part = target.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        if ELSEWHERE.match(target):
            return found[0]
        if not urls:
            return "" if opening.startswith("!") else opening[1:-2]
        if opening.startswith("!"):
            target = f"{urls['Source']}/raw/v{version}/{path}"
        elif path.startswith(OFF_THE_SITE):
            target = f"{urls['Source']}/blob/v{version}/{path}{mark}{part}"
        elif path.startswith("docs/") and path.endswith(".md"):
            page = path.removeprefix("docs/").removesuffix(".md")
            target = f"{urls['Documentation']}/{page}.html{mark}{part}"
        elif path.startswith("service/docs/") and path.endswith(".md"):
            page = path.removeprefix("service/docs/").removesuffix(".md")
            target = f"{urls['Documentation']}/service/{page}.html{mark}{part}"
        else:
            target = f"{urls['Source']}/blob/v{version}/{path}{mark}{part}"
        return f"{opening}{target})"

    return LINK.sub(address, text)


class IndexReadme(MetadataHookInterface):
    """Hatchling asks it for the README when it writes the metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README of the distribution."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        folder = FOLDERS[metadata["name"]]
        shown = on_an_index(text, metadata.get("urls", {}), metadata["version"], folder)
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
