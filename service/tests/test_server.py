"""Which addresses are safe, what a check tells, and what the server says."""

import socket
from dataclasses import replace

import pytest
from service.tests.bank import LOAN

from evenhand.errors import InvalidInput
from evenhand_service import Settings
from evenhand_service.server import check, make_server, require_safe_address


def test_without_a_proxy_the_service_stays_on_this_machine():
    products = (LOAN,)
    require_safe_address(Settings(products))
    require_safe_address(Settings(products, host="0.0.0.0", behind_proxy=True))
    with pytest.raises(InvalidInput, match="clear"):
        require_safe_address(Settings(products, host="0.0.0.0"))
    with pytest.raises(InvalidInput, match="machine"):
        require_safe_address(
            Settings(products, host="0.0.0.0", behind_proxy=True, open_dashboard=True)
        )


@pytest.fixture
def settings(tmp_path):
    names = {name: str(tmp_path / name) for name in ("ledger", "keyring")}
    return Settings((LOAN,), **names)


def test_a_server_logs_no_request_and_does_not_name_itself(settings):
    config = make_server(None, settings).config
    assert (config.access_log, config.server_header) == (False, False)


def test_a_check_tells_what_holds_and_writes_nothing(tmp_path, settings):
    free = replace(settings, port=0)
    assert [line.split(":")[0] for line in check(free)] == [
        "settings",
        "address",
        "keyring",
        "ledger",
    ]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidInput, match=r"ledger.*write"):
        list(check(replace(free, ledger=str(tmp_path / "nowhere" / "ledger"))))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidInput, match="free"):
            list(check(replace(free, port=taken.getsockname()[1])))


# a state of the database that was once genuine, put back
