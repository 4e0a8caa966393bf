"""One key, one answer, for ever; one person and window, one U; nothing half."""

import contextlib
import hashlib
import json
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service.tests.ledger.helpers import (
    DAY,
    KEYRING,
    PRODUCT,
    Clock,
    coin,
    decided,
    opened,
    person,
    published,
)
from sqlalchemy import event, select

from evenhand.canonical import canonical
from evenhand.randomness import KeyedHash, keyed_uniform
from evenhand_service import render
from evenhand_service.ledger import (
    Answer,
    Application,
    Conflict,
    Gone,
    GroupReport,
    Invalid,
    NotFound,
    Terms,
    WindowPlan,
    decision_draw,
    history,
    verify,
)
from evenhand_service.ledger.chain import lookup_values
from evenhand_service.ledger.database import DECISIONS, PEOPLE, PERSONAL
from evenhand_service.ledger.decision_draw import Drawn, SharedParts, text_agrees

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PROBABILITY = st.floats(0.0, 1.0)
HEX = st.binary(min_size=32, max_size=32).map(bytes.hex)
DRAWN = st.builds(
    Drawn, seq=st.integers(1, 2**53 - 1), at=FINITE, key=TEXT, person=TEXT,
    product=TEXT,
    window=TEXT, u=PROBABILITY, acceptance=PROBABILITY | st.integers(0, 1), accept=st.booleans(),
    policy=TEXT, epoch=st.integers(0, 2**53 - 1), audit_weight=PROBABILITY | st.just(0),
    audit=st.booleans(), first=st.booleans(),
    mode=st.sampled_from(["live", "shadow", "killed"]),
)  # fmt: skip


def test_the_draw_is_the_hmac_of_the_windows_secret(ledger, policy):
    drawn = ledger.decide(person(1), Terms(policy, 0.5)).drawn
    secret = KEYRING.window_secret(ledger.id, drawn.window)
    assert drawn.u == keyed_uniform(secret, "p1", PRODUCT, drawn.window)
    assert drawn.accept == (drawn.u < 0.5)
    assert drawn.propensity == 0.5


@pytest.mark.parametrize("days", [0, 1, 400, 2000])
def test_the_same_key_gets_the_same_bytes_for_ever(where, days):
    clock = Clock()
    with opened(where, clock) as ledger:
        policy = published(ledger)
        first = ledger.decide(person(1), Terms(policy, 0.5))
    clock.now += days * DAY
    with opened(where, clock) as ledger:
        again = ledger.decide(person(1), Terms(policy, 0.99))
        assert (again.body, again.drawn, again.replayed) == (first.body, first.drawn, True)
        assert ledger.find("k1").body == first.body


def test_the_same_key_with_another_body_is_a_conflict(where):
    with opened(where) as ledger:
        policy = published(ledger)
        ledger.decide(person(1), Terms(policy, 0.5))
        before = ledger.head()
        for other in (
            person(1, features=(0.5, 2.1)),
            person(1, group="b"),
            person(2, key="k1"),
            person(1, body=b"x"),
        ):
            with pytest.raises(Conflict):
                ledger.decide(other, Terms(policy, 0.5))
        assert ledger.head() == before


def test_a_person_who_comes_back_in_the_window_meets_the_same_coin_and_counts_once(
    ledger, policy, clock
):
    first = ledger.decide(person(1), Terms(policy, 0.5)).drawn
    second = ledger.decide(person(1, key="again"), Terms(policy, 0.5)).drawn
    assert (second.u, second.first, second.usable) == (first.u, False, False)
    clock.now += 31 * DAY
    third = ledger.decide(person(1, key="later"), Terms(policy, 0.5)).drawn
    assert third.u != first.u
    assert third.first
    assert [row.seq for row in ledger.history(PRODUCT)] == [first.seq, third.seq]


def test_first_means_that_person_product_and_window_have_not_met(where):
    """Against a set that remembers everything: batches of people who come again and again, in two
    products, over windows, some erased.
    """
    clock, generator, met = Clock(), random.Random(0), set()
    with opened(where, clock) as ledger:
        policies = {PRODUCT: published(ledger)}
        policies["card"] = ledger.publish("card", coin(0.5), epoch=1, parent=None, checkpoint={}).id
        for step in range(60):
            clock.now += generator.expovariate(1 / (3 * DAY))
            if step % 9 == 8 and (number := generator.randrange(12)) in {one[0] for one in met}:
                with contextlib.suppress(NotFound):  # erased before, and not back since
                    ledger.erase(f"p{number}", by="officer")
            asked = [
                (generator.randrange(12), generator.choice([PRODUCT, "card"]))
                for _ in range(generator.randint(1, 8))
            ]
            answers = ledger.decide_many(
                [
                    (
                        person(number, key=f"{step}-{place}", product=product),
                        Terms(policies[product], 0.5),
                    )
                    for place, (number, product) in enumerate(asked)
                ]
            )
            for (number, product), answer in zip(asked, answers, strict=True):
                slot = (number, product, answer.drawn.window)
                assert answer.drawn.first == (slot not in met)
                met.add(slot)
        assert len({window for _, _, window in met}) > 3
        assert verify(ledger, deep=True).ok


def test_twice_in_one_batch_is_once(ledger, policy):
    terms = Terms(policy, 0.5)
    asked = [
        (person(1), terms),
        (person(1), terms),
        (person(1, key="other"), terms),
        (person(1, group="b"), terms),
    ]
    one, same, other, conflict = ledger.decide_many(asked)
    assert one.body == same.body
    assert [one.replayed, same.replayed, other.replayed] == [False, True, False]
    assert (other.drawn.u, other.drawn.first) == (one.drawn.u, False)
    assert isinstance(conflict, Conflict)


def test_people_products_and_windows_have_coins_of_their_own(ledger, policy, clock):
    ledger.publish("other", {"kind": "x"}, epoch=1, parent=None, checkpoint={})
    elsewhere = ledger.policies("other")[0].id
    draws = {decided(ledger, policy, [n])[0].drawn.u for n in range(20)}
    draws.add(
        ledger.decide(person(1, key="elsewhere", product="other"), Terms(elsewhere, 0.5)).drawn.u
    )
    assert len(draws) == 21


def test_100_identical_requests_at_once_are_one_draw(where):
    with opened(where) as ledger:
        policy = published(ledger)
        for number in range(3):
            before, bodies = ledger.head().seq, _at_once(ledger, policy, number)
            assert len(bodies) == 100
            assert len(set(bodies)) == 1
            assert ledger.head().seq - before == 1 + (
                number == 0
            )  # the first one also opens the window
        assert verify(ledger, deep=True).ok


def _at_once(ledger, policy, number):
    barrier, bodies = threading.Barrier(100), []

    def ask():
        barrier.wait()
        bodies.append(ledger.decide(person(number), Terms(policy, 0.5)).body)

    threads = [threading.Thread(target=ask) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return bodies


def test_an_unpublished_policy_decides_nothing(ledger, policy):
    head = ledger.window() and ledger.head()
    with pytest.raises(NotFound):
        ledger.decide(person(1), Terms("f" * 64, 0.5))
    with pytest.raises(NotFound):
        ledger.decide(person(1, product="card"), Terms(policy, 0.5))
    assert ledger.head() == head


def test_bad_input_is_refused_at_the_border():
    for features in ([float("nan")], [float("inf")]):
        with pytest.raises(Invalid):
            person(1, features=features)
    for key in ("", "x" * 201, "a\x1fb", "line\nbreak", "nul\x00"):
        with pytest.raises(Invalid):
            person(1, key=key)
    for acceptance, audit in ((1.5, 0.0), (-0.1, 0.0), (float("nan"), 0.0), (0.2, 0.3)):
        with pytest.raises(Invalid):
            Terms("p", acceptance, audit)


def test_the_audit_coin_is_part_of_the_same_draw(ledger, policy):
    answers = decided(ledger, policy, range(300), 0.7, audit_weight=0.3)
    for answer in answers:
        assert answer.drawn.audit == (answer.drawn.u < 0.3)
        assert answer.drawn.accept or not answer.drawn.audit
    assert (
        0
        < sum(answer.drawn.audit for answer in answers)
        < sum(answer.drawn.accept for answer in answers)
    )


def test_shadow_and_killed_decisions_are_kept_but_not_learned_from(ledger, policy):
    for number, mode in enumerate(("live", "shadow", "killed")):
        ledger.decide(person(number), Terms(policy, 0.5, mode=mode))
    assert len(list(ledger.history(PRODUCT))) == 1
    assert len(list(ledger.history(PRODUCT, usable_only=False))) == 3


def test_an_erased_person_is_gone_and_never_drawn_again(where):
    with opened(where) as ledger:
        policy = published(ledger)
        first = decided(ledger, policy, range(5))[1].drawn
        ledger.decide(person(1, key="second"), Terms(policy, 0.5))
        assert ledger.erase("p1", by="officer") == 2
        for key in ("k1", "second"):
            with pytest.raises(Gone):
                ledger.decide(person(1, key=key), Terms(policy, 0.5))
            with pytest.raises(Gone):
                ledger.find(key)
        back = ledger.decide(person(1, key="back"), Terms(policy, 0.5)).drawn
        assert (back.u, back.first) == (first.u, False)
        assert ledger.find("k2").drawn.person == "p2"
        assert verify(ledger, deep=True).ok
        assert ledger.counts(PRODUCT).erased == 2
        with pytest.raises(NotFound):
            ledger.erase("nobody", by="officer")


def test_no_statement_of_an_erasure_grows_with_the_rows_of_the_person(where, monkeypatch):
    """PostgreSQL takes at most 65,535 values in a statement, and somebody may have more rows."""
    monkeypatch.setattr(decision_draw, "MOST_ERASED", 50)
    monkeypatch.setattr(history, "PAGE", 50)
    with opened(where) as ledger:
        policy = published(ledger)
        terms = Terms(policy, 0.5)
        ledger.decide_many([(person(1, key=f"k{i}"), terms) for i in range(230)])
        ledger.decide(person(2, key="other"), terms)
        ledger.report("k0", GroupReport("b"))  # a row of the person that is no decision
        sizes = []

        def count(connection, cursor, statement, values, context, many):
            sizes.append(len(values))

        for engine in (ledger.store.writer, ledger.store.reader):
            event.listen(engine, "before_cursor_execute", count)
        assert ledger.erase("p1", by="officer") == 230
        assert ledger.newest_erasure(PRODUCT) == ledger.head().seq
        assert 0 < max(sizes) <= 60
        assert ledger.counts(PRODUCT).erased == 230
        assert verify(ledger, deep=True).ok
        assert ledger.find("other").drawn.person == "p2"


def test_an_erased_person_leaves_no_plaintext_and_no_key_in_the_file(path, clock):
    with opened(path, clock) as ledger:
        policy = published(ledger)
        ledger.decide(
            person("canary-person", key="canary-key", group="canary-group"), Terms(policy, 0.5)
        )
        wrapped = _wrapped_key(ledger)
        assert any(wrapped in file.read_bytes() for file in path.parent.iterdir())
        ledger.erase("pcanary-person", by="officer")
        everything = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert wrapped not in everything
    assert b"canary" not in everything


def _wrapped_key(ledger):
    with ledger.store.reader.connect() as connection:
        return bytes(connection.exec_driver_sql("SELECT key FROM people").scalar_one())


def test_time_never_runs_backwards(ledger, policy, clock):
    late = decided(ledger, policy, [1])[0].drawn.at
    clock.now -= 400 * DAY
    assert decided(ledger, policy, [2])[0].drawn.at == late


async def _both(ledger, policy):
    import asyncio

    jobs = [ledger.decide_async([(person(n), Terms(policy, 0.5))]) for n in range(50)]
    return await asyncio.gather(*jobs)


def test_an_event_loop_can_wait_for_the_commit(ledger, policy):
    import asyncio

    answers = asyncio.run(_both(ledger, policy))
    assert [ledger.find(f"k{n}").body for n in range(50)] == [answer[0].body for answer in answers]


@given(now=st.floats(0, 4e9), length=st.floats(1.0, 1e8), origin=st.floats(-1e9, 1e9))
def test_every_moment_lies_in_its_window(now, length, origin):
    name, starts, ends = WindowPlan(length, origin).at(now)
    assert starts <= now < ends
    assert WindowPlan(length, origin).at(starts)[0] == name


@pytest.mark.parametrize("length", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_windows(length):
    with pytest.raises(Invalid):
        WindowPlan(length)


def decision_text(drawn, key, slot, commit, sealed):
    """The text that the chain gets, by what decisions on the same terms share's terms."""
    shared = SharedParts(drawn.product, drawn, drawn.window)  # it knows its own terms
    members = ",".join(f'"{name}":"{digest}"' for name, digest in commit.items())
    return shared.text(drawn, key, slot, members, sealed)


@given(DRAWN, HEX)
def test_shared_parts_draw_as_the_definition_says(drawn, secret):
    shared = SharedParts(drawn.product, drawn, drawn.window)
    parts = (drawn.person, drawn.product, drawn.window)
    secret = bytes.fromhex(secret)
    assert shared.uniform(KeyedHash(secret), drawn.person) == keyed_uniform(secret, *parts)


@given(DRAWN, HEX, HEX, st.lists(HEX, min_size=5, max_size=5))
def test_the_text_of_a_decision(drawn, key, slot, digests):
    commit = dict(zip(("features", "group", "reply", "who"), digests[1:], strict=True))
    hidden = {"seq", "at", "key", "person"}
    body = {name: value for name, value in drawn._asdict().items() if name not in hidden}
    body |= {
        "propensity": drawn.propensity,
        "key": key,
        "slot": slot,
        "commit": commit,
        "sealed": digests[0],
    }
    assert decision_text(drawn, key, slot, commit, digests[0]) == canonical(body)


def test_an_application_that_was_checked_before_is_the_same():
    given = ("k", "Zoë", "loan", [0.5, -0.0, 2.0], "a")
    assert vars(Application.unchecked(*given)) == vars(Application(*given))
    assert Application.unchecked(*given).asked == Application(*given).asked


def stored(drawn, key, slot, digests):
    """(text of a decision, its columns and its fingerprint as a parser finds them)."""
    commit = dict(zip(("features", "group", "reply", "who"), digests[1:], strict=True))
    text = decision_text(drawn, key, slot, commit, digests[0])
    return text, [*lookup_values("decision", json.loads(text)), digests[0]]


@given(DRAWN, HEX, HEX, st.lists(HEX, min_size=5, max_size=5))
def test_a_text_agrees_with_its_own_columns(drawn, key, slot, digests):
    text, (*columns, fingerprint) = stored(drawn, key, slot, digests)
    assert text_agrees(text, tuple(columns), fingerprint)


@given(DRAWN, HEX, HEX, st.lists(HEX, min_size=5, max_size=5), st.data())
def test_a_text_agrees_with_no_other_columns(drawn, key, slot, digests, data):
    """Also not with a name that goes on as the text does after it: `loan","propensity":0.5`."""
    text, values = stored(drawn, key, slot, digests)
    place = data.draw(st.integers(0, 5))
    if isinstance(values[place], bool):
        values[place] = data.draw(st.sampled_from([not values[place], 7, None, "true"]))
    else:
        literal = canonical(values[place])
        after = text[text.index(literal) + len(literal) :]
        longer = [values[place] + '"' + after[: end + 1] for end in range(len(after))]
        values[place] = data.draw(
            st.sampled_from([*longer, values[place] + "0", None, 1, b"x"])
            | TEXT.filter(lambda other: other != values[place])
        )
    assert not text_agrees(text, tuple(values[:-1]), values[-1])


@given(
    st.lists(FINITE, min_size=1, max_size=4),
    st.none() | st.tuples(FINITE, FINITE),
    st.none() | FINITE | st.booleans(),
)
def test_what_the_conflict_check_compares(features, prices, group):
    asked = Application("k", "Zoë", "loan", features, group=group, prices=prices)
    assert asked.asked == canonical(
        ["Zoë", "loan", features, group, None if prices is None else list(prices)]
    )


@given(DRAWN)
def test_the_answer_of_the_service(drawn):
    names = ("accept", "at", "audit", "epoch", "key", "mode", "policy", "propensity", "window")
    document = {name: getattr(drawn, name) for name in names} | {
        "act": drawn.mode != "shadow",
        "row": drawn.seq,
    }
    assert render(drawn) == canonical(document).encode()


def test_old_digests_of_requests_still_match(ledger, policy):
    """A key that was answered before is found again by the digest of the long way."""
    answer = ledger.decide(person(1), Terms(policy, 0.5))
    long_way = hashlib.sha256(canonical(["p1", "loan", [0.5, 2.0], "a", None]).encode()).hexdigest()
    assert hashlib.sha256(person(1).asked.encode()).hexdigest() == long_way
    assert ledger.decide(person(1), Terms(policy, 0.5)).body == answer.body


STORED = [
    select(*(column for column in table.columns if column.name != "hash")).order_by(table.c[0])
    for table in (DECISIONS, PERSONAL, PEOPLE)
]


class Bytes:
    """The same "random" bytes for every ledger of a test."""

    def __init__(self):
        self.stream = random.Random(3)

    def __call__(self, size):
        return self.stream.randbytes(size)


def mixed(policy):
    """People as a hostile batch has them: keys twice, with the same and with another body, people
    twice, names full of quotes, and refused ones between the others.
    """
    names = ["a", 'b"', "c\\", "{},NULL", "Zoë", "'; DROP TABLE decisions; --", "%s", "\U0001f9d1"]
    generator = random.Random(4)
    for number in range(230):
        who = f"{generator.choice(names)}{generator.randrange(60)}"
        key = f"{generator.choice(names)}{generator.randrange(90)}"
        group = generator.choice([None, "a", 'x","y', True, 3, 0.5])
        asked = Application(key, who, PRODUCT, (generator.choice([0.5, 1e-7]),), group)
        unpublished = number % 17 == 5
        yield asked, Terms("nobody's" if unpublished else policy, 0.5, 0.1)


def test_a_batch_is_what_its_applications_are_one_by_one(where, tmp_path):
    """Bit for bit: rows, sealed fields and answers; nobody notices a neighbour's refusal. The
    hashes are not compared, because the first row of a chain names its database.
    """
    found = []
    for together, place in ((True, where), (False, tmp_path / "one by one.sqlite")):
        # from this entropy follows the id of the ledger, too
        with opened(place, entropy=Bytes()) as ledger:
            asked = list(mixed(published(ledger)))
            parts = [asked] if together else [[one] for one in asked]
            answers = [answer for part in parts for answer in ledger.decide_many(part)]
            kinds = {type(answer) for answer in answers}
            assert kinds == {Answer, Conflict, NotFound}
            assert verify(ledger, deep=True).ok
            with ledger.store.reader.connect() as connection:
                rows = [connection.execute(table).all() for table in STORED]
            told = [a if isinstance(a, Answer) else (type(a), str(a)) for a in answers]
            found.append((told, [[tuple(row) for row in table] for table in rows]))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["P-e\u0301", "x ", " x", "o\u0308"])
def test_one_person_has_one_spelling(name):
    """NFD and blanks would make another person of the same one: another coin, another erasure."""
    for changed in ({"person": name}, {"key": name}):
        told = {"key": "k", "person": "p", "product": "loan", "features": [0.5]}
        with pytest.raises(Invalid, match="normal form C"):
            Application(**{**told, **changed})
    Application("k", "P-\u00e9", "loan", [0.5])
