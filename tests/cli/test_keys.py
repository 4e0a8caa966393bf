"""`evenhand keys`: on the ledger of the settings, with or without a service."""

import json

import pytest
from click.testing import CliRunner
from tests.service.bank import TOML

from evenhand.cli import main
from evenhand.service import KeyStore, LedgerKeys, load_settings
from evenhand.service.server import open_ledger


@pytest.fixture
def config(tmp_path):
    (tmp_path / "service.toml").write_text(TOML)
    return tmp_path / "service.toml"


def keys(config, *words):
    return CliRunner().invoke(main, ["keys", words[0], "--config", str(config), *words[1:]])


def test_first_create_list_and_revoke(config):
    first = keys(config, "first")
    token = first.output.split()[-1]
    assert (first.exit_code, token[:3]) == (0, "eh_")
    assert "has keys already" in keys(config, "first").output
    made = keys(config, "create", "--scope", "decide", "--scope", "audit", "--name", "web shop")
    shop = made.output.strip()
    listed = keys(config, "list").output
    assert token not in listed
    assert shop not in listed
    line = next(line for line in listed.splitlines() if "web shop" in line)
    assert line.split()[2:4] == ["valid", "audit,decide"]
    assert "is revoked" in keys(config, "revoke", line.split()[1], "--by", "Ada").output
    with open_ledger(load_settings(config), lambda: 1e9) as ledger:
        assert LedgerKeys(ledger).find(shop) is None
        assert LedgerKeys(ledger).find(token) is not None
        events = [(event.action, event.by) for event in ledger.key_events()]
    assert events[-1] == ("key_revoked", "Ada")
    assert [action for action, _ in events] == ["key_created", "key_created", "key_revoked"]


def test_the_list_as_one_document(config):
    token = keys(config, "first").output.split()[-1]
    made = keys(config, "create", "--scope", "observe", "--scope", "decide", "--name", "web shop")
    told = json.loads(keys(config, "list", "--json").stdout)["keys"]
    shop = next(key for key in told if key["name"] == "web shop")
    assert shop["tenant"] == "bank"
    assert (shop["state"], shop["scopes"]) == ("valid", ["decide", "observe"])
    keys(config, "revoke", shop["id"])
    listed = keys(config, "list", "--json", "--tenant", "bank")
    states = {key["id"]: key["state"] for key in json.loads(listed.stdout)["keys"]}
    assert states[shop["id"]] == "revoked"
    assert sorted(states.values()) == ["revoked", "valid"]
    for secret in (token, made.output.strip()):
        assert secret not in listed.output
    unknown = keys(config, "list", "--json", "--tenant", "x")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "they are bank" in unknown.stderr


def test_the_keys_of_the_file_are_imported(config):
    token = KeyStore(config.parent / "keys.json").add("bank", ["decide"], "old")
    assert keys(config, "import").output.startswith("1 keys of")
    assert keys(config, "import").output.startswith("0 keys of")
    with open_ledger(load_settings(config), lambda: 1e9) as ledger:
        assert LedgerKeys(ledger).find(token).name == "old"


def test_what_cannot_be_is_refused_with_a_way_out(config):
    unknown = keys(config, "revoke", "0" * 12)
    assert (unknown.exit_code, "evenhand keys list" in unknown.output) == (2, True)
    nobody = keys(config, "create", "--tenant", "x", "--scope", "decide", "--name", "n")
    assert "they are bank" in nobody.output
    assert "does not exist" in keys(config, "import").output
    with open_ledger(load_settings(config), lambda: 1e9):
        busy = keys(config, "list")
    assert "POST /v1/keys" in busy.output


def test_a_database_that_is_away_loses_no_key(config):
    """The first key is made when the database can be written, and not before."""
    away = TOML.replace("ledger.sqlite", "postgresql://evenhand@127.0.0.1:1/none")
    config.write_text(away)
    refused = keys(config, "first")
    assert (refused.exit_code, "cannot be opened" in refused.output) == (2, True)
    config.write_text(TOML)
    assert "eh_" in keys(config, "first").output
