import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evenhand.cli import main
from evenhand.cli.demo import lending_csv

Run = Callable[..., Result]
LENDING = ("--label", "repaid", "--good", "yes", "--group", "group")


@pytest.fixture(scope="session", autouse=True)
def width() -> Iterator[None]:
    """The same width in a terminal, in a pipe and beside other workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        yield


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call the command line in an empty folder; whatever is not a clean exit is raised."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


@pytest.fixture
def lending(tmp_path: Path) -> Path:
    path = tmp_path / "lending.csv"
    path.write_text(lending_csv(), encoding="utf-8", newline="")
    return path


@pytest.fixture
def decisions(tmp_path: Path) -> Path:
    """What a lender decided; outcomes of the accepted alone."""
    path = tmp_path / "decisions.csv"
    path.write_text("sex,approved,repaid\n" + "f,yes,yes\nf,no,\nm,yes,yes\nm,yes,no\n" * 20)
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str, name: str = "data.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def lending_rows(lending: Path) -> list[dict[str, str]]:
    with lending.open(newline="") as file:
        return list(csv.DictReader(file))
