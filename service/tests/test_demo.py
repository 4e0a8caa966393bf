"""The demonstration's people, clock and folder; `tests/commands/test_serve.py` runs it."""

import tempfile
import time
from pathlib import Path

import pytest

from evenhand.errors import InvalidInput
from evenhand_service import demo
from evenhand_service.client import Decision
from evenhand_service.demo import (
    MOST_PEOPLE,
    PEOPLE_PER_TICK,
    POPULATION,
    TICK,
    DemoPopulation,
    FastClock,
    demo_settings,
)
from evenhand_service.server import require_safe_address
from evenhand_service.settings import DAY, load_settings


def test_a_second_is_a_day_once_the_clock_runs(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    clock = FastClock()
    began = clock()
    monkeypatch.setattr(time, "monotonic", lambda: 150.0)
    assert clock() == began  # the service takes its time to begin
    clock.go_on_from(began + 7.0)
    clock.go_on_from(began)
    clock.start()
    monkeypatch.setattr(time, "monotonic", lambda: 152.5)
    assert clock() - began == pytest.approx(7.0 + 2.5 * DAY)


def test_its_settings_stay_on_this_machine_and_in_one_folder(tmp_path):
    folder = tmp_path / "new"
    settings = demo_settings(folder)
    require_safe_address(settings)
    assert settings.open_dashboard
    assert not settings.log_requests
    for place in (settings.ledger, settings.keyring):
        assert place.startswith(str(folder))
    assert load_settings(folder / "service.toml") == settings == demo_settings(folder)


def test_it_takes_no_folder_that_is_not_its_own(tmp_path):
    (tmp_path / "report.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="earlier"):
        demo_settings(tmp_path)
    settings = tmp_path / "service.toml"
    settings.write_text("[service]")
    with pytest.raises(InvalidInput, match="writes"):
        demo_settings(tmp_path)
    assert settings.read_text() == "[service]"


class Keys:
    """Counts the keys that are made."""

    made = 0

    def add(self, scopes, name, by, days):
        self.made += 1
        return f"token {self.made}"


class Population(DemoPopulation):
    """Its service accepts everybody; what was asked and reported is kept, with the time."""

    def decide_many(self, asked):
        self.asked |= {one.key: (one, self.clock()) for one in asked}
        return [
            Decision(True, True, 0.0, False, 1, one.key, "live", "", 1.0, 1, "w") for one in asked
        ]

    def report_many(self, outcomes):
        self.told |= {one.key: (one.label, self.clock()) for one in outcomes}


class Ticks:
    """An event that is set after so many waits; each wait lets the clock go on."""

    def __init__(self, number, wall):
        self.left = number
        self.wall = wall

    def wait(self, seconds):
        self.wall[0] += seconds
        self.left -= 1
        return self.left < 0


def population(monkeypatch, ticks, applied=0):
    wall = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: wall[0])
    product = load_settings_of_the_demo().products[0]
    made = Population("", Keys(), FastClock(), product, print, applied)
    made.asked = {}
    made.told = {}
    monkeypatch.setattr(demo, "Client", lambda *_, **__: made)
    made.stop = Ticks(ticks, wall)
    made._run()
    return made


def load_settings_of_the_demo():
    with tempfile.TemporaryDirectory() as place:
        return demo_settings(Path(place) / "demo")


def test_a_second_start_owes_no_outcome(monkeypatch):
    """Stopped and started again, every person has the features, and the outcome within the same
    days, that one long run would have given; the population is not another one.
    """
    whole = population(monkeypatch, 120)
    first = population(monkeypatch, 60)
    second = population(monkeypatch, 120, first.applied)
    assert first.applied == 60 * PEOPLE_PER_TICK
    expected, early, late = whole.asked, first.told, second.told
    for key, (application, _) in first.asked.items():
        assert expected[key][0] == application
    stopped = 60 * TICK * DAY
    owed = 0
    for key, (label, at) in whole.told.items():
        born = expected[key][1]
        if born - whole.clock._began >= stopped:
            continue
        assert (early | late)[key][0] == label
        if key not in early:
            owed += 1
            reported = stopped + late[key][1] - second.clock._began
            assert reported == pytest.approx(at - whole.clock._began, abs=2 * TICK * DAY)
    assert owed > 5 * PEOPLE_PER_TICK


def test_a_key_that_ends_is_followed_by_another(monkeypatch):
    monkeypatch.setattr(demo, "MOST_DAYS", 35.0)
    made = population(monkeypatch, round(20 / TICK))  # each serves for 5 of its 35 days
    assert 4 <= made.keys.made <= 5


def test_it_ends_before_it_fills_the_disk(monkeypatch):
    monkeypatch.setattr(demo, "MOST_PEOPLE", 3 * PEOPLE_PER_TICK)
    made = population(monkeypatch, 60)
    assert made.applied == 3 * PEOPLE_PER_TICK
    assert len(made.told) > 2.5 * PEOPLE_PER_TICK
    assert MOST_PEOPLE * 3000 < 1e9  # bytes, at 2.6 kB a decision


def test_its_people_are_of_the_groups_of_its_product(tmp_path):
    (product,) = demo_settings(tmp_path / "demo").products
    assert set(product.groups) == set(POPULATION.groups)
