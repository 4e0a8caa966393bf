"""Writes release/: what is in dist/, by hash, and what each wheel brings along.

`make package` has built dist/. SHA256SUMS has one line for each file there, as `sha256sum --check`
reads them. <wheel>.cdx.json is an SBOM in CycloneDX, of an environment in which nothing but this
wheel and what it asks for is installed. cyclonedx-py writes and validates it; it is no part of the
development set, and is installed into an environment of its own.

    python scripts/describe_release.py
"""

import json
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CYCLONEDX = "cyclonedx-bom==7.5.0"
"""The tool of the CycloneDX project for Python."""


def run(*command: object) -> None:
    """One command; its failure ends the script."""
    subprocess.run([str(word) for word in command], check=True)


def environment(place: Path, *installed: object) -> Path:
    """The interpreter of an empty environment with something installed into it."""
    run(sys.executable, "-m", "venv", place)
    python = place / "bin/python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *installed)
    return python


def sums(folder: Path) -> str:
    """A line for each file of a folder: its hash and its name."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    if not files:
        sys.exit(f"there is no wheel and no source distribution in {folder}; run make package.")
    return "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def without_this_machine(bom: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The SBOM without the paths from which the wheels were installed, which mean nothing
    elsewhere; pip, which stands in every environment, is left out, too.
    """
    pip = {part["bom-ref"] for part in bom["components"] if part["name"] in ("pip", "setuptools")}
    bom["components"] = [part for part in bom["components"] if part["bom-ref"] not in pip]
    bom["dependencies"] = [one for one in bom["dependencies"] if one["ref"] not in pip]
    for one in bom["dependencies"]:
        one["dependsOn"] = [ref for ref in one.get("dependsOn", []) if ref not in pip]
    for part in [bom["metadata"]["component"], *bom["components"]]:
        references = part.get("externalReferences", [])
        kept = [one for one in references if not one["url"].startswith("file:")]
        part["externalReferences"] = kept
    if str(folder) in json.dumps(bom):
        sys.exit(f"the SBOM names {folder}")
    return bom


def write_sbom(cyclonedx: Path, wheels: list[Path], project: Path, target: Path) -> None:
    """What an environment holds into which only these wheels were installed."""
    with tempfile.TemporaryDirectory(prefix="evenhand-sbom-") as folder:
        installed = environment(Path(folder) / "env", *wheels)
        kind = ["--mc-type", "library", "--short-PURLs", "--output-reproducible"]
        run(cyclonedx, "environment", installed, "--pyproject", project, *kind, "-o", target)
    bom = without_this_machine(json.loads(target.read_text(encoding="utf-8")), wheels[0].parent)
    target.write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")
    print(f"{target.name}: {len(bom['components'])} packages")


def main() -> None:
    """Hashes first, then an SBOM for each wheel."""
    dist = ROOT / "dist"
    about = ROOT / "release"
    about.mkdir(exist_ok=True)
    (about / "SHA256SUMS").write_text(sums(dist), encoding="utf-8")
    print((about / "SHA256SUMS").read_text(encoding="utf-8"), end="")
    (library,) = dist.glob("evenhand-*.whl")
    (service,) = dist.glob("evenhand_service-*.whl")
    with tempfile.TemporaryDirectory(prefix="evenhand-cyclonedx-") as folder:
        cyclonedx = environment(Path(folder) / "env", CYCLONEDX).with_name("cyclonedx-py")
        for wheels, project in (
            ([library], ROOT / "pyproject.toml"),
            ([service, library], ROOT / "service/pyproject.toml"),
        ):
            name = wheels[0].name.split("-py3")[0]
            write_sbom(cyclonedx, wheels, project, about / f"{name}.cdx.json")


if __name__ == "__main__":
    main()
