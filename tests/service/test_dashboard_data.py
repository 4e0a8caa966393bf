"""The dashboard's data: groups that are told late are in it, groups of fewer than ten are not."""

import collections
import random

import pytest
from tests.service.attacks import session
from tests.service.bank import DAY, LOAN, Bank, Clock, application
from tests.service.lives import live
from tests.torture.identity import _throw_coins

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.service.dashboard_data import SMALLEST_GROUP, ProductCounts, read_dashboard


def lines(bank, tally):
    return {
        line.name: (line.people, line.accepted)
        for line in read_dashboard(bank.service.decider, LOAN, tally).groups
    }


def tell(bank, keys, group):
    for key in keys:
        assert bank.post("/v1/groups", {"key": key, "group": group}).status_code == 200


def test_groups_that_are_told_late_are_shown(bank):
    tally = ProductCounts(bank.ledger, LOAN)
    keys = [f"k{number}" for number in range(24)]
    bank.post("/v1/decisions/batch", {"decisions": [application(key) for key in keys]})
    assert lines(bank, tally) == {}
    tell(bank, keys[:9], "north")
    board = read_dashboard(bank.service.decider, LOAN, tally)
    assert (board.groups, board.hidden) == ((), True)
    tell(bank, keys[9:12], "north")
    tell(bank, keys[12:], "south")
    assert lines(bank, tally) == {"north": (12, 12), "south": (12, 12)}
    page = bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text
    assert "north" in page
    assert "south" in page


def test_a_disputed_group_leaves_its_line_and_small_ones_are_never_named(bank):
    tally, keys = (
        ProductCounts(bank.ledger, LOAN),
        [f"k{number}" for number in range(SMALLEST_GROUP)],
    )
    bank.post("/v1/decisions/batch", {"decisions": [application(key) for key in keys]})
    tell(bank, keys, "rare-group")
    assert lines(bank, tally) == {"rare-group": (10, 10)}
    assert "rare-group" in bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text
    tell(bank, keys[:1], "another")
    assert lines(bank, tally) == {}
    assert "rare-group" not in bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text


def test_however_often_it_is_looked_at_the_table_is_that_of_the_history(bank, monkeypatch):
    """Decisions, groups, disputes and overrides in random order, with looks in between, in small
    portions.
    """
    monkeypatch.setattr("evenhand.service.dashboard_data.ROWS_AT_ONCE", 7)
    _throw_coins(bank)
    chosen, tally, number = random.Random(4), ProductCounts(bank.ledger, LOAN), 0
    for _ in range(150):
        what = chosen.random()
        if what < 0.4 or number == 0:
            group = chosen.choice([None, None, "a", "b"])
            bank.post("/v1/decisions", application(f"k{number}", group=group))
            number += 1
        elif what < 0.7:
            bank.post(
                "/v1/groups", {"key": f"k{chosen.randrange(number)}", "group": chosen.choice("aab")}
            )
        elif what < 0.85:
            body = {
                "key": f"k{chosen.randrange(number)}",
                "accept": chosen.random() < 0.5,
                "by": "clerk",
            }
            bank.post("/v1/overrides", body)
        else:
            tally.refresh()
    for _ in range(1 + number // 7):
        tally.refresh()
    rows = list(bank.ledger.history("bank", "loan"))
    assert {g: n for g, n in tally.people.items() if n} == collections.Counter(
        row.group for row in rows
    )
    accepted = collections.Counter(row.group for row in rows if row.accept)
    assert {g: n for g, n in tally.accepted.items() if n} == accepted
    assert 0 < sum(accepted.values()) < len(rows)
    overruled = collections.Counter((row.group, row.accept) for row in rows if row.overruled)
    assert {key: n for key, n in tally.overruled.items() if n} == overruled
    assert sum(overruled.values()) > 5


def test_overruled_decisions_are_shown_by_group_and_direction_without_small_groups(bank):
    """On the page and in the plan, with the sentence that says what the claim is about."""
    first, certificate = (
        bank.ledger.policies("bank", "loan")[-1],
        bank.ledger.certificates("bank", "loan")[-1].document,
    )
    coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5)).to_json()
    bank.ledger.publish(
        "bank", "loan", coin, epoch=2, parent=first.id, checkpoint={}, certificate=certificate
    )
    bank.service.decider.refresh(LOAN)
    keys = [f"k{number}" for number in range(60)]
    asked = [
        application(key, group="north" if n < 50 else "rare-group") for n, key in enumerate(keys)
    ]
    answers = {}
    for start in (0, 30):
        found = bank.post("/v1/decisions/batch", {"decisions": asked[start : start + 30]}).json()[
            "decisions"
        ]
        answers |= {answer["key"]: answer["accept"] for answer in found}
    for key in keys[54:]:
        bank.post(
            "/v1/erasures", {"person": f"p-{key}", "by": "officer"}
        )  # four are left, who may not be named
    chosen = [*keys[:20], *keys[50:54]]
    for key in chosen:
        bank.post("/v1/overrides", {"key": key, "accept": not answers[key], "by": "clerk"})
    bank.post(
        "/v1/overrides", {"key": keys[30], "accept": answers[keys[30]], "by": "clerk"}
    )  # agrees with the draw
    expected = collections.Counter(
        ("north" if key in keys[:50] else None, answers[key]) for key in chosen
    )
    board = read_dashboard(bank.service.decider, LOAN, ProductCounts(bank.ledger, LOAN))
    assert {
        (line.group, line.drawn == "accept"): line.decisions for line in board.overruled
    } == expected
    page = bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text
    assert "as drawn, before people overrule it" in page
    assert "rare-group" not in page
    plan = bank.get("/v1/plan?product=loan").json()
    assert sum(line["decisions"] for line in plan["overruled"]) == len(chosen)
    assert "as drawn" in plan["as_drawn"]


def test_a_typing_error_is_named_on_the_certificate_and_not_on_the_page(bank):
    """One "Nroth": outside, counted and named to whoever may audit. The page never names small
    groups; it says that there are some.
    """
    sample, answers = bank.arrive(300, seed=7)
    bank.post("/v1/decisions", application("typo", group="Nroth"))
    bank.repay(sample, answers)
    for _ in range(2):
        bank.clock.now += 6 * DAY
        bank.service.trainer(LOAN).close()
        bank.service.decider.refresh(LOAN)
        bank.repay(*bank.arrive(50, seed=8, first=10_000 + int(bank.clock.now)))
    document = bank.get("/v1/certificate?product=loan").json()["certificate"]
    assert {"group": "Nroth", "people": 1} in document["outside"]
    assert any("Nroth" in note for note in bank.get("/v1/plan?product=loan").json()["notes"])
    page = bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text
    assert "Nroth" not in page
    assert "outside of it" in page


def test_who_decides_adds_up_to_1_and_knows_the_kill_switch(bank):
    """Every part is drawn: what was learned, accepting everybody and rejecting everybody."""
    live(bank, 6)
    began = bank.clock.now
    bank.clock.now += DAY
    bank.post("/v1/kill", {"product": "loan", "by": "officer", "constant": "reject"})
    board = read_dashboard(bank.service.decider, LOAN, ProductCounts(bank.ledger, LOAN))
    for part in (*board.deciding, *board.history):
        assert part.learned + part.audit + part.rejecting == pytest.approx(1.0)
    assert board.deciding[-1].rejecting == 1.0
    assert board.deciding[-1].at > began
    assert board.deciding[-2].rejecting == board.history[-1].rejecting
    assert len(board.deciding) == len(board.history) + 1
    assert board.state == "killed"
    newest = bank.ledger.policies("bank", "loan")
    bookings = next(p for p in reversed(newest) if p.in_lineage).info["delta"]
    assert board.booked == pytest.approx(sum(one["share"] for one in bookings))
    assert board.booked > 0
    named = [one["rule"] for one in board.drift if " by rule " in one["stream"]]
    assert named
    assert all("accept if score" in rule for rule in named)


def test_a_new_process_shows_everybody_at_once(tmp_path, monkeypatch):
    """It goes on from what another has kept, instead of reading people again."""
    monkeypatch.setattr("evenhand.service.dashboard_data.KEEP_EVERY", 5)
    monkeypatch.setattr("evenhand.ledger.ledger.KEEP_EVERY", 5)
    place, clock = tmp_path / "ledger.sqlite", Clock()
    first = Bank(place, clock)
    first.arrive(40, seed=1)
    before = first.service.counts["bank", "loan"]
    before.refresh()
    first.close()
    second = Bank(place, clock)
    again = ProductCounts(second.ledger, LOAN)
    again.refresh(0)  # not a single decision is read
    assert again.people == before.people
    assert again.accepted == before.accepted
    assert sum(again.people.values()) == 40
    fresh = ProductCounts(second.ledger, LOAN)
    monkeypatch.setattr(type(second.ledger), "summary", lambda *_: None)
    fresh.refresh(0)
    assert sum(fresh.people.values()) == 0  # the negative control: without a summary nobody
    second.close()
