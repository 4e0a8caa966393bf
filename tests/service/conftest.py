"""A bank per test, with seeded coins, on SQLite in a temporary directory; and a PostgreSQL server
for those who ask for one.
"""

import random

import pytest
from tests.ledger.conftest import postgres_server, postgres_url  # noqa: F401
from tests.service.bank import Bank


@pytest.fixture
def bank(tmp_path):
    made = Bank(tmp_path / "ledger.sqlite", entropy=random.Random(7).randbytes)
    yield made
    made.close()
