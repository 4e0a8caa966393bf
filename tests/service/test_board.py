"""The dashboard's table of acceptance by group: people whose group is told late are in it, groups of fewer than ten are not."""

import collections
import random

from tests.service.attacks import session
from tests.service.bank import LOAN, application
from tests.torture.identity import _throw_coins

from evenhand.service.board import SMALLEST, Tally, read_board


def lines(bank, tally):
    return {line.name: (line.people, line.accepted) for line in read_board(bank.service.desk, LOAN, tally).groups}


def tell(bank, keys, group):
    for key in keys:
        assert bank.post("/v1/groups", {"key": key, "group": group}).status_code == 200


def test_groups_that_are_told_late_are_shown(bank):
    tally = Tally(bank.ledger, LOAN)
    keys = [f"k{number}" for number in range(24)]
    bank.post("/v1/decisions/batch", {"decisions": [application(key) for key in keys]})
    assert lines(bank, tally) == {}
    tell(bank, keys[:9], "north")
    board = read_board(bank.service.desk, LOAN, tally)
    assert (board.groups, board.hidden) == ((), True)
    tell(bank, keys[9:12], "north")
    tell(bank, keys[12:], "south")
    assert lines(bank, tally) == {"north": (12, 12), "south": (12, 12)}
    page = bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text
    assert "north" in page
    assert "south" in page


def test_a_disputed_group_leaves_its_line_and_small_ones_are_never_named(bank):
    tally, keys = Tally(bank.ledger, LOAN), [f"k{number}" for number in range(SMALLEST)]
    bank.post("/v1/decisions/batch", {"decisions": [application(key) for key in keys]})
    tell(bank, keys, "rare-group")
    assert lines(bank, tally) == {"rare-group": (10, 10)}
    assert "rare-group" in bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text
    tell(bank, keys[:1], "another")
    assert lines(bank, tally) == {}
    assert "rare-group" not in bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text


def test_however_often_it_is_looked_at_the_table_is_that_of_the_history(bank, monkeypatch):
    """Decisions, groups and disputes in random order, with looks in between, in small portions."""
    monkeypatch.setattr("evenhand.service.board.ONE_GO", 7)
    _throw_coins(bank)
    chosen, tally, number = random.Random(4), Tally(bank.ledger, LOAN), 0
    for _ in range(150):
        what = chosen.random()
        if what < 0.4 or number == 0:
            group = chosen.choice([None, None, "a", "b"])
            bank.post("/v1/decisions", application(f"k{number}", group=group))
            number += 1
        elif what < 0.8:
            bank.post("/v1/groups", {"key": f"k{chosen.randrange(number)}", "group": chosen.choice("aab")})
        else:
            tally.refresh()
    for _ in range(1 + number // 7):
        tally.refresh()
    rows = list(bank.ledger.history("bank", "loan"))
    assert {g: n for g, n in tally.people.items() if n} == collections.Counter(row.group for row in rows)
    accepted = collections.Counter(row.group for row in rows if row.accept)
    assert {g: n for g, n in tally.accepted.items() if n} == accepted
    assert 0 < sum(accepted.values()) < len(rows)
