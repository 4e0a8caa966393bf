"""The demonstration's people and clock; `tests/cli/test_serve.py` runs it."""

import time

import pytest

from evenhand_service.demo import POPULATION, PRODUCT, FastClock, demo_settings
from evenhand_service.server import require_safe_address


def test_a_second_is_a_day(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    clock = FastClock()
    began = clock()
    monkeypatch.setattr(time, "monotonic", lambda: 102.5)
    assert clock() - began == pytest.approx(2.5 * 86400)


def test_its_settings_stay_on_this_machine_and_in_one_directory(tmp_path):
    settings = demo_settings(tmp_path)
    require_safe_address(settings)
    assert settings.open_dashboard
    for place in (settings.ledger, settings.keyring):
        assert place.startswith(str(tmp_path))


def test_its_people_are_of_the_groups_of_its_product():
    assert set(PRODUCT.groups) == set(POPULATION.groups)
