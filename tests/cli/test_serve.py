"""`evenhand serve`: what it refuses, what it says, and the demonstration."""

import pytest
from click.testing import CliRunner
from tests.service.bank import TOML
from tests.torture.serving import free_port

from evenhand.cli import main
from evenhand.service import LedgerKeys, load_settings
from evenhand.service.server import open_ledger


def serve(*words):
    return CliRunner().invoke(main, ["serve", "--port", str(free_port()), *words])


@pytest.mark.parametrize("words", [(), ("--demo", "--config", __file__)])
def test_either_settings_or_the_demonstration(words):
    done = serve(*words)
    assert done.exit_code == 2
    assert "give either --config FILE or --demo" in done.output


def test_the_demonstration_decides_about_simulated_people():
    done = serve("--demo", "--seconds", "2")
    assert done.exit_code == 0, done.output
    assert "/dashboard" in done.output
    applied = next(line for line in done.output.splitlines() if "simulated people" in line)
    assert int(applied.split()[0].replace(",", "")) > 0


def test_the_first_key_is_shown_once(tmp_path):
    (tmp_path / "service.toml").write_text(TOML)
    words = ("--config", str(tmp_path / "service.toml"), "--seconds", "0.1", "--no-train")
    first, again = serve(*words), serve(*words)
    assert first.exit_code == again.exit_code == 0, first.output + again.output
    assert "First key of bank" in first.output
    assert "eh_" not in again.output
    token = next(line.strip() for line in first.output.splitlines() if "eh_" in line)
    assert token.encode() not in (tmp_path / "ledger.sqlite").read_bytes()
    with open_ledger(load_settings(tmp_path / "service.toml"), lambda: 1e10) as ledger:
        assert [key.name for key in LedgerKeys(ledger).all("bank")] == ["first"]


def test_plain_http_is_not_spoken_beyond_this_machine(tmp_path):
    (tmp_path / "service.toml").write_text(TOML)
    done = serve("--config", str(tmp_path / "service.toml"), "--host", "0.0.0.0")
    assert done.exit_code == 2
    assert "in the clear" in done.output
