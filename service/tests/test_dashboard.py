"""The dashboard in a real browser: Debian's chromium, driven by Playwright. Screenshots go to
EVENHAND_SCREENSHOTS, if it is set.
"""

import collections
import os
import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from jinja2 import Environment
from service.tests.attacks import (
    session,
    stored_scripts,
)
from service.tests.bank import DAY, LOAN, Bank, Clock, application, settings
from service.tests.ports import free_port
from service.tests.simulated_run import run_epochs
from service.tests.torture.identity import _throw_coins
from tests.tools import need
from tests.without_clocks import PATIENCE, until

from evenhand.fairness.certificate import Certificate, CoveredFrom, Suspension
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand_service import dashboard
from evenhand_service.dashboard import read_dashboard
from evenhand_service.ledger import Wanted, list_decisions
from evenhand_service.server import make_server
from evenhand_service.state import SMALLEST_GROUP, ProductCounts

XSS = '<img src=x onerror="document.title=1">"\'><script>document.title="owned"</script>'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A bank with nine epochs, a group with a hostile name and a group of three, behind a
    real socket.
    """
    bank = Bank(tmp_path_factory.mktemp("bank") / "ledger.sqlite")
    run_epochs(bank, 9)
    hostile = [
        dict(key=f"x{i}", person=f"x{i}", product="loan", features=[0.1 * i], group=XSS)
        for i in range(15)
    ]
    small = [
        dict(key=f"s{i}", person=f"s{i}", product="loan", features=[0.1], group="tiny")
        for i in range(3)
    ]
    bank.post("/v1/decisions/batch", {"decisions": hostile + small})
    bank.post("/v1/kill", {"product": "card", "by": XSS, "note": XSS})
    port = free_port()
    running = make_server(bank.app, settings(port=port))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    until(lambda: running.started, "the start of the service")
    bank.url = f"http://127.0.0.1:{port}"
    yield bank
    running.should_exit = True
    thread.join(PATIENCE)
    bank.close()


@pytest.fixture(scope="module")
def driven(served):
    from playwright.sync_api import sync_playwright

    program = need("browser", "libatomic")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=PATIENCE * 1000
        )
        yield browser
        browser.close()


@pytest.fixture
def chromium(driven):
    need("browser", "libatomic")  # each test by itself, not only the first for whom it is started
    return driven


def visit(chromium, bank, **options):
    """A page that has logged in with an audit key; what it complains about is collected."""
    context = chromium.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.complaints, page.foreign = [], []
    page.on("console", lambda m: page.complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: page.complaints.append(str(e)))
    page.on(
        "request", lambda r: page.foreign.append(r.url) if not r.url.startswith(bank.url) else None
    )
    page.goto(bank.url)
    page.fill("#token", bank.tokens["audit"])
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdict")
    return page


def shoot(page, name):
    folder = os.environ.get("EVENHAND_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)


def too_wide(page):
    """What sticks out of the window or, a table, out of what it stands in: nothing scrolls
    sideways. Everything that can be opened is open.
    """
    return page.evaluate(
        """() => {
            document.querySelectorAll('details').forEach(one => { one.open = true })
            const out = [...document.querySelectorAll('body *')]
                .filter(e => !e.closest('.hide, .skip, svg, .list thead'))
                .filter(e => e.getBoundingClientRect().right > window.innerWidth + 1
                    || e.tagName == 'TABLE' && e.offsetWidth > e.parentElement.clientWidth + 1
                    || e.scrollWidth > e.clientWidth + 1
                        && getComputedStyle(e).overflowX != 'visible')
            if (document.documentElement.scrollWidth > window.innerWidth)
                out.push(document.documentElement)
            return out.map(e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 60))
        }"""
    )


def a_rejected_key(bank):
    """The newest of the people whom a learned policy rejected."""
    listed = list_decisions(bank.ledger, LOAN.name, Wanted(accept=False))
    return next(row.key for row in listed.rows if row.key.startswith("k"))


LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1200, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1200, "height": 900}},
    "phone": {
        "color_scheme": "light",
        "viewport": {"width": 375, "height": 740},  # 400 and less
        "device_scale_factor": 2,
    },
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_board_is_readable_in_every_look(served, chromium, look):
    page = visit(chromium, served, **LOOKS[look])
    assert page.inner_text(".verdict h2") == "Certified"
    assert too_wide(page) == []
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(20, 23, 26)") == (look == "dark")
    assert page.locator("svg[role=img]").count() == 2
    shoot(page, f"board-{look}")
    page.click("nav[aria-label=Pages] >> text=Decisions")
    page.wait_for_selector("table.list")
    assert too_wide(page) == []
    assert page.locator("table.list tbody tr").count() == 50
    shoot(page, f"list-{look}")
    page.fill("#key", a_rejected_key(served))
    page.keyboard.press("Enter")
    page.wait_for_selector("text=What would have changed it")
    assert too_wide(page) == []
    shoot(page, f"decision-{look}")
    page.click("nav[aria-label=Pages] >> text=Certificate")
    page.wait_for_selector("text=The people behind it")
    assert too_wide(page) == []
    shoot(page, f"certificate-{look}")
    page.click("nav[aria-label=Pages] >> text=Pack")
    page.wait_for_selector("text=check-pack")
    assert too_wide(page) == []
    shoot(page, f"pack-{look}")
    assert page.complaints == []
    assert page.foreign == []


def test_a_table_that_scrolls_sideways_is_noticed(served, chromium):
    """The negative control: a table that is wider than its card, with a bar to scroll it."""
    page = visit(chromium, served, **LOOKS["light"])
    page.evaluate(
        """() => {
            const card = document.querySelector('section.card')
            card.style.overflowX = 'auto'
            card.insertAdjacentHTML('beforeend', '<table><tr><td></td></tr></table>')
            card.lastElementChild.style.width = '1100px'
        }"""
    )
    assert any(one.startswith("TABLE") for one in too_wide(page))


def test_the_certificate_and_the_pack_have_pages_and_need_a_session(served):
    cookie = {"Cookie": session_of(served, served.tokens["audit"])}
    for name, words in {
        "certificate": (
            "Certified with probability at least",
            "one population",
            "row of the chain",
        ),
        "pack": ("evenhand audit pack --config", "--product loan", "check-pack"),
    }.items():
        shown = served.client.get(f"/dashboard/{name}?product=loan", headers=cookie)
        assert shown.status_code == 200
        assert [word for word in words if word not in shown.text] == []
        assert "tiny" not in shown.text
        refused = served.client.get(
            f"/dashboard/{name}", headers={"Cookie": ""}, follow_redirects=False
        )
        assert (refused.status_code, refused.headers["location"]) == (303, "/dashboard/login")
    killed = served.client.get("/dashboard/certificate?product=card", headers=cookie)
    assert "A constant decides, so every gap is exactly 0." in killed.text
    overview = served.client.get("/dashboard?product=loan", headers=cookie)
    for name in ("certificate", "pack"):
        assert f'href="/dashboard/{name}?product=loan"' in overview.text


def test_a_decision_is_found_by_filters_and_its_key_is_a_link(served, chromium):
    page = visit(chromium, served)
    page.click("nav[aria-label=Pages] >> text=Decisions")
    page.select_option("select[name=decision]", "rejected")
    page.select_option("select[name=outcome]", "none")
    page.click("button:text('Show')")
    page.wait_for_selector("table.list")
    rows = page.locator("table.list tbody tr")
    keys = [page.locator("table.list tbody a").nth(n).inner_text() for n in range(3)]
    assert all("rejected" in rows.nth(n).inner_text() for n in range(rows.count()))
    if page.locator("a[rel=next]").count():
        page.click("a[rel=next]")
        page.wait_for_selector("a[rel=prev]")
        assert keys[0] not in page.inner_text("table.list")
        page.click("a[rel=prev]")
        page.wait_for_selector(f"table.list a:text-is('{keys[0]}')")
    page.click(f"table.list a:text-is('{keys[0]}')")
    page.wait_for_selector("text=The coin")
    assert keys[0] in page.inner_text("h1")
    assert page.locator("svg.strip .fell").count() == 2
    assert page.complaints == []


def test_the_list_names_what_it_refuses(served):
    served.post("/v1/decisions", application("mine-only"))
    mine = session_of(served, served.tokens["audit"])

    def got(path, cookie):
        return served.client.get(f"/dashboard/decisions{path}", headers={"Cookie": cookie})

    assert "mine-only" in got("?product=loan", mine).text
    for query, words in {
        "outcome=fine": "no decision has the outcome",
        "decision=maybe": "it is accepted or rejected",
        "group=tiny": "it is known or unknown",
        "from=yesterday": "days are written like",
        "before=x": "is no row",
        "policy=<script>": "none of this product",
    }.items():
        answer = got(f"?product=loan&{query}", mine)
        assert answer.status_code == 422
        assert words in answer.text
        assert "<script>" not in answer.text
    assert got("", "").status_code in (303, 200)
    for scope in ("decide", "observe"):
        refused = served.client.post("/dashboard/login", data={"key": served.tokens[scope]})
        assert refused.status_code == 403


def session_of(bank, token):
    answer = bank.client.post("/dashboard/login", data={"key": token}, follow_redirects=False)
    return answer.headers["set-cookie"].split(";")[0]


def test_hostile_names_stay_text_and_small_groups_stay_hidden(served, chromium):
    page = visit(chromium, served)
    assert XSS in page.inner_text("main")
    assert page.title() == "loan · evenhand"
    assert page.locator("main img").count() == 0
    assert "tiny" not in page.content()
    assert "fewer than 10 people are not shown" in page.inner_text("main")
    page.goto(f"{served.url}/dashboard?product=card")
    assert page.inner_text(".verdict h2") == "Kill switch on"
    assert page.locator("main img, main script").count() == 0
    booked = float(page.inner_text("section[aria-labelledby=h-delta] strong"))
    parts = page.locator("section[aria-labelledby=h-delta] > ul > li").all_inner_texts()
    shares = [float(part.split(":")[0]) for part in parts if ":" in part and part[0].isdigit()]
    assert booked == pytest.approx(sum(shares), rel=1e-3)
    shoot(page, "killed")
    assert page.complaints == []


def test_an_inline_script_would_not_run(served, chromium):
    page = visit(chromium, served)
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.evaluate(
            """() => new Promise(done => {
                document.body.insertAdjacentHTML(
                    'beforeend', '<img src=x onerror="document.title=`owned`">')
                // the handler above comes first, if it may run
                document.body.lastElementChild.addEventListener('error', () => done())
            })"""
        )
        assert page.title() != "owned"


def test_the_page_keeps_itself_fresh_and_keeps_what_is_open(served, chromium):
    page = visit(chromium, served)
    before = page.inner_text(".tiles")
    page.click("#d-history summary")
    served.arrive(30, seed=77, first=500_000)
    page.wait_for_function("old => document.querySelector('.tiles').innerText !== old", arg=before)
    assert page.locator("#d-history").get_attribute("open") is not None


def test_everything_can_be_reached_by_keyboard(served, chromium):
    page = visit(chromium, served)
    reached = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(document.activeElement.id || document.activeElement.textContent || '').trim()"
            )
        )
    assert {"key", "Explain", "Log out", "As a table", "loan", "card"} <= reached


def test_a_session_can_look_and_never_write(served, chromium):
    page = visit(chromium, served)
    status = page.evaluate(
        "fetch('/v1/kill', {method: 'POST', headers: {'Content-Type': 'application/json'}, "
        'body: \'{"product":"loan","by":"x"}\'}).then(r => r.status)'
    )
    assert status == 401
    page.click("text=Log out")
    page.wait_for_selector("#token")
    page.goto(f"{served.url}/dashboard")
    assert page.locator("#token").count() == 1


def test_another_site_can_neither_log_in_nor_frame(served):
    refused = served.client.post(
        "/dashboard/login", data={"key": served.all}, headers={"Origin": "https://evil.example"}
    )
    assert refused.status_code == 403
    refused = served.client.post(
        "/dashboard/login", data={"key": served.all}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert refused.status_code == 403
    assert served.client.get("/dashboard/login").headers["x-frame-options"] == "DENY"


def test_pages_that_do_not_escape_are_noticed(bank, monkeypatch):
    """The negative control of the attack with scripts."""
    careless = Environment(
        loader=dashboard._environment().loader,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    careless.filters.update(dashboard._environment().filters)
    monkeypatch.setattr(dashboard, "_environment", lambda: careless)
    passed, _ = stored_scripts(bank)
    assert {path for path, mark in passed if mark == "<script>alert"} >= {
        "/dashboard",
        "/dashboard/live",
    }


# the data: groups that are told late are in it, groups of fewer than ten are not


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
    monkeypatch.setattr("evenhand_service.state.ROWS_AT_ONCE", 7)
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
    rows = list(bank.ledger.history("loan"))
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
        bank.ledger.policies("loan")[-1],
        bank.ledger.certificates("loan")[-1].document,
    )
    coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5)).to_json()
    bank.ledger.publish(
        "loan", coin, epoch=2, parent=first.id, checkpoint={}, certificate=certificate,
        info={"guarantee": LOAN.guarantee},
    )  # fmt: skip
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
    run_epochs(bank, 6)
    began = bank.clock.now
    bank.clock.now += DAY
    bank.post("/v1/kill", {"product": "loan", "by": "officer", "constant": "reject"})
    board = read_dashboard(bank.service.decider, LOAN, ProductCounts(bank.ledger, LOAN))
    for part in (*board.deciding, *(policy.weights for policy in board.history)):
        assert part.learned + part.audit + part.rejecting == pytest.approx(1.0)
    assert board.deciding[-1].rejecting == 1.0
    assert board.deciding[-1].at > began
    assert board.deciding[-2].rejecting == board.history[-1].weights.rejecting
    assert len(board.deciding) == len(board.history) + 1
    assert board.state == "killed"
    newest = bank.ledger.policies("loan")
    bookings = next(p for p in reversed(newest) if p.in_lineage).info["delta"]
    assert board.booked == pytest.approx(sum(one["share"] for one in bookings))
    assert board.booked > 0
    named = [one["rule"] for one in board.drift if " by rule " in one["stream"]]
    assert named
    assert all("accept if score" in rule for rule in named)


def test_a_new_process_shows_everybody_at_once(tmp_path, monkeypatch):
    """It goes on from what another has kept, instead of reading people again."""
    monkeypatch.setattr("evenhand_service.state.KEEP_EVERY", 5)
    monkeypatch.setattr("evenhand_service.ledger.ledger.KEEP_EVERY", 5)
    place, clock = tmp_path / "ledger.sqlite", Clock()
    first = Bank(place, clock)
    first.arrive(40, seed=1)
    before = first.service.counts["loan"]
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


def test_what_was_suspended_is_on_the_pages_and_in_the_document(bank):
    """A learner that was suspended and is certified again: its certificate and both pages say from
    which round on something is claimed, and what was found.
    """
    run_epochs(bank, 2)
    newest = [p for p in bank.ledger.policies("loan") if p.in_lineage][-1]
    issued = Certificate.from_json(bank.ledger.certificate_of(newest).document)
    again = replace(
        issued,
        covered=tuple(CoveredFrom(one, 1234) for one in issued.groups),
        suspensions=(Suspension(1234, ("labels of north",), 1300),),
    )
    bank.ledger.certify("loan", again.to_json(), epoch=newest.epoch)
    cookie = {"Cookie": session(bank)}
    for path in ("/dashboard", "/dashboard/certificate"):
        page = " ".join(bank.client.get(path, headers=cookie).text.split())
        assert "The learner was suspended at round 1,234 (labels of north)" in page
        assert "over the whole run of the learner" not in page
    assert "loan was suspended at round 1,234 (labels of north); constants alone decided" in page
    overview = " ".join(bank.client.get("/dashboard", headers=cookie).text.split())
    assert (
        "since the suspension at round 1,234 that is claimed of the policies after it" in overview
    )
    answer = bank.get("/v1/certificate?product=loan").json()
    assert answer["certificate"]["suspensions"] == again.to_json()["suspensions"]
