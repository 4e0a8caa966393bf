"""Build the source distributions and the wheels of the library and of the service, and try them
where nothing else is installed.

The source distribution is unpacked, installed with its extra `test`, and must pass its own tests (a
quick part of them unless --all). The wheel is installed into empty environments, alone and with
each extra, and must run what the README shows for it. `twine check` renders the README as a package
index would. It prints what the core needs on disk.

    make package
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
QUICK = ["tests/test_readme.py", "tests/test_face.py", "tests/test_words.py", "tests/faircsc"]
NOT_FOR_USERS = {"check", "test", "lint", "docs", "dev", "bench"}
UPLOADER = ["twine==6.1.0", "packaging==24.2"]
"""What the action of the workflow `release` uploads with: it refuses metadata newer than 2.4."""
TRIES = {
    "": [
        "evenhand --version",
        "python -m evenhand solve --help",
        "python readme.py",
        # without matplotlib the figures are printed, and no picture is drawn
        "evenhand frontier lending --limit 0.1",
        "evenhand compare --learner accept-all --rounds 500 --seeds 1 --out compared",
    ],
    "plots": ["evenhand demo"],
    "tables": ["python -c 'import evenhand.tables, narwhals, pyarrow'"],
}
WITH_SERVICE = [
    "evenhand serve --help",
    "python -c 'import evenhand_service, evenhand_service.ledger'",
    "evenhand serve --demo --seconds 3 --port {port}",
]
WITHOUT_SERVICE = """
import subprocess, sys
done = subprocess.run(["evenhand", "serve", "--demo"], capture_output=True, text=True)
assert done.returncode == 2 and "evenhand-service" in done.stderr, done
assert "Traceback" not in done.stderr, done.stderr
listed = subprocess.run(["evenhand", "--help"], capture_output=True, text=True, check=True).stdout
commands = [line.split()[0] for line in listed.split("Commands:")[1].splitlines() if line.strip()]
assert not {"serve", "keys", "train", "db", "audit"} & set(commands), commands
"""
"""What the library alone says of a command of the service."""


def run(command: str | list[object], **options: object) -> None:
    """One command; its failure ends the script."""
    words = command if isinstance(command, str) else " ".join(map(str, command))
    print(f"  {words}", flush=True)
    shell = isinstance(command, str)
    subprocess.run(
        command if shell else [str(word) for word in command], shell=shell, check=True, **options
    )


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def environment(place: Path, *installed: str) -> Path:
    """An empty environment with something installed into it."""
    run([UV, "venv", "-q", "--python", sys.executable, place])
    run([UV, "pip", "install", "-q", "--python", place, *installed])
    return place


def megabytes(place: Path) -> float:
    """What an environment takes on disk, without bytecode."""
    files = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc") / 1e6


def try_wheel(wheel: Path, place: Path) -> None:
    """Install the wheel alone and with each extra, and run what the README shows for it."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(asked["optional-dependencies"]) - NOT_FOR_USERS
    readme = (ROOT / "README.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", readme, re.DOTALL))
    (place / "readme.py").write_text(code)
    # the table of the README is fetched here, for an empty environment has neither pip nor uv
    run([sys.executable, "-m", "evenhand", "data", "show", "taiwan"])
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    for extra in ["", *sorted(extras)]:
        what = f"{wheel}[{extra}]" if extra else str(wheel)
        home = environment(place / f"env-{extra or 'core'}", what)
        if not extra:
            print(f"  core: {megabytes(home):.0f} MB without bytecode", flush=True)
        path = f"{home / 'bin'}:/usr/bin:/bin"
        for command in ["python -c 'import evenhand'", *TRIES.get(extra, [])]:
            home_of_it = {"HOME": str(place), "XDG_CACHE_HOME": cache}
            run(command, cwd=place, env={"PATH": path, **home_of_it})


def try_service(wheel: Path, service: Path, place: Path) -> None:
    """The library without the service says what to install; with it, the service runs."""
    (place / "without.py").write_text(WITHOUT_SERVICE)
    for name, installed, commands in (
        ("alone", [wheel], ["python without.py"]),
        ("both", [wheel, service], WITH_SERVICE),
    ):
        home = environment(place / f"env-{name}", *map(str, installed))
        for command in commands:
            filled = command.replace("{port}", str(free_port()))
            path = f"{home / 'bin'}:/usr/bin:/bin"
            run(filled, cwd=place, env={"PATH": path, "HOME": str(place)})


def require_no_server(wheel: Path) -> None:
    """No HTTP server code in the library's wheel, and no dependency that brings one."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        asked = re.findall(r"^Requires-Dist: ([\w-]+)", archive.read(metadata).decode(), re.M)
    servers = {"fastapi", "starlette", "uvicorn", "httptools", "sqlalchemy", "psycopg"}
    wrong = servers & {name.lower() for name in asked}
    wrong |= {name for name in names if name.startswith("evenhand_service")}
    if wrong:
        sys.exit(f"the library's wheel holds {sorted(wrong)}")


def try_source(source: Path, place: Path, every_test: bool) -> None:
    """Unpack the source distribution, install it, and run its own tests."""
    with tarfile.open(source) as archive:
        archive.extractall(place, filter="data")
    tree = place / source.name.removesuffix(".tar.gz")
    home = environment(place / "sdist", f"{tree}[test]")
    tests = [] if every_test else QUICK
    run([home / "bin/python", "-m", "pytest", "-q", *tests], cwd=tree, env=os.environ)


def main() -> None:
    """Build, unpack, install, try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="all tests of the source distribution")
    parser.add_argument("--only", choices=("wheel", "source"), help="try one of the two")
    asked = parser.parse_args()
    run(["rm", "-rf", ROOT / "dist"])
    run([UV, "build", "-q", "--out-dir", ROOT / "dist", ROOT])
    run([UV, "build", "-q", "--out-dir", ROOT / "dist", ROOT / "service"])
    (source,), (wheel,) = (
        list((ROOT / "dist").glob(f"evenhand-*.{end}")) for end in ("tar.gz", "whl")
    )
    (service,) = (ROOT / "dist").glob("evenhand_service-*.whl")
    require_no_server(wheel)
    with tempfile.TemporaryDirectory(prefix="evenhand-package-") as folder:
        print("what an index would show:")
        checker = environment(Path(folder) / "twine", *UPLOADER)
        built = sorted((ROOT / "dist").glob("evenhand*"))
        run([checker / "bin/twine", "check", "--strict", *built])
        if asked.only != "source":
            print("the wheel, alone and with each extra:")
            try_wheel(wheel, Path(folder))
            print("the service beside it:")
            try_service(wheel, service, Path(folder))
        if asked.only != "wheel":
            print("the source distribution, with its own tests:")
            try_source(source, Path(folder), asked.all)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
