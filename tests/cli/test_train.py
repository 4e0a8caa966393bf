"""`evenhand train` on a ledger that the service has filled."""

import pytest
from click.testing import CliRunner
from tests.service.bank import TOML, ledger_with_settings

from evenhand.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return ledger_with_settings(tmp_path)


def test_train_from_the_command_line(folder):
    done = CliRunner().invoke(main, ["train", "--config", "service.toml", "--now"])
    assert done.exit_code == 0, done.output
    assert "epoch 2 published" in done.output
    assert "not due" in CliRunner().invoke(main, ["train", "--config", "service.toml"]).output
    (folder / "service.toml").write_text(TOML.replace("limit = 0.2", "limit = 0.3"))
    refused = CliRunner().invoke(main, ["train", "--config", "service.toml", "--now"])
    assert refused.exit_code == 2
    assert "another promise" in refused.output
