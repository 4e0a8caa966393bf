"""A bank per test, with seeded coins, on SQLite in a temporary directory; and a PostgreSQL server
for those who ask for one.
"""

import random

import pytest
from service.tests.bank import Bank
from service.tests.ledger.conftest import postgres_server, postgres_url  # noqa: F401
from tests.conftest import loggers_as_they_were  # noqa: F401 - and its profile of hypothesis


@pytest.fixture
def bank(tmp_path):
    made = Bank(tmp_path / "ledger.sqlite", entropy=random.Random(7).randbytes)
    yield made
    made.close()
