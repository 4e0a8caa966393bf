"""Opening and running: which addresses are safe, what a first start makes, and snapshots."""

from pathlib import Path

import pytest
from tests.service.bank import LOAN

from evenhand.errors import InvalidInput
from evenhand.service import SCOPES, Settings
from evenhand.service.server import (
    ledger_or_snapshot,
    make_server,
    open_keyring,
    open_keys,
    open_ledger,
    require_safe_address,
)


def test_plain_http_stays_on_this_machine():
    products = (LOAN,)
    require_safe_address(Settings(products))
    require_safe_address(Settings(products, host="0.0.0.0", plain_http=True))
    with pytest.raises(InvalidInput, match="in the clear"):
        require_safe_address(Settings(products, host="0.0.0.0"))
    with pytest.raises(InvalidInput, match="stays on this machine"):
        require_safe_address(
            Settings(products, host="0.0.0.0", plain_http=True, open_dashboard=True)
        )


@pytest.fixture
def settings(tmp_path):
    names = {name: str(tmp_path / name) for name in ("ledger", "keyring", "keys")}
    return Settings((LOAN,), **names)


def test_the_first_start_makes_what_is_missing_and_the_next_finds_it(settings):
    keys, tokens = open_keys(settings)
    assert set(keys.find(tokens["bank"]).scopes) == set(SCOPES)
    with open_ledger(settings, lambda: 1e9) as ledger:
        public_key = ledger.keyring.public_key
    again, none = open_keys(settings)
    assert none == {}
    assert again.find(tokens["bank"]) is not None
    assert open_keyring(settings).public_key == public_key


def test_a_ledger_without_its_keyring_is_not_opened(settings):
    open_ledger(settings, lambda: 1e9).close()
    Path(settings.keyring).unlink()
    with pytest.raises(InvalidInput, match="exists, but its keyring"):
        open_ledger(settings, lambda: 1e9)
    assert not Path(settings.keyring).exists()


def test_while_the_ledger_is_open_elsewhere_a_snapshot_is_read(settings):
    with (
        open_ledger(settings, lambda: 1e9) as ledger,
        ledger_or_snapshot(settings, lambda: 1e9) as (copy, itself),
    ):
        assert (itself, copy.head()) == (False, ledger.head())
    with ledger_or_snapshot(settings, lambda: 1e9) as (_, itself):
        assert itself


def test_a_server_logs_no_request_and_does_not_name_itself(settings):
    config = make_server(None, settings).config
    assert (config.access_log, config.server_header) == (False, False)
