"""A bank per test, on SQLite in a temporary directory."""

import pytest
from tests.service.bank import Bank


@pytest.fixture
def bank(tmp_path):
    made = Bank(tmp_path / "ledger.sqlite")
    yield made
    made.close()
