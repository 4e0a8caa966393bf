"""Metrics: what is counted, for whom, and without naming anybody."""

from tests.service.bank import application


def value(bank, line, token=None):
    found = [row for row in bank.get("/metrics", token).text.splitlines() if row.startswith(line)]
    return float(found[0].split()[-1]) if found else None


def test_every_answer_is_counted_by_its_kind(bank):
    bank.post("/v1/decisions", application())
    bank.post("/v1/decisions", application())
    bank.post("/v1/decisions", application(product="nothing"))
    batch = [application("a"), application("b"), application("b", features=[1, 2])]
    bank.post("/v1/decisions/batch", {"decisions": batch})
    assert value(bank, 'evenhand_decisions_total{accept="true",mode="live"}') == 3
    assert value(bank, "evenhand_replayed_total") == 1
    assert value(bank, "evenhand_refused_total") == 2
    assert value(bank, "evenhand_decision_seconds_count") == 4


def test_reports_are_counted_by_their_result(bank):
    bank.post("/v1/decisions", application())
    for key in ("k1", "k1", "unknown"):
        bank.post("/v1/outcomes", {"key": key, "label": 1})
    for result in ("recorded", "repeated", "refused"):
        assert value(bank, f'evenhand_outcomes_total{{result="{result}"}}') == 1


def test_a_product_shows_where_its_decisions_stand_to_its_own_tenant(bank):
    bank.post("/v1/decisions", application(group="north"))
    assert value(bank, 'evenhand_people{product="loan",standing="usable"}') == 1
    assert value(bank, 'evenhand_policy_weight{part="audit",product="loan"}') == 1
    assert value(bank, 'evenhand_epoch{product="loan"}') == 1
    assert value(bank, 'evenhand_epoch{product="card"}', bank.rival) is None
    text = bank.get("/metrics").text
    assert "north" not in text
    assert "p-k1" not in text


def test_what_an_operator_is_woken_for_is_a_gauge(bank):
    bank.arrive(30, seed=1)
    bank.post("/v1/shadow", {"product": "loan", "by": "op"})
    text = bank.get("/metrics").text
    told = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert told['evenhand_mode{mode="shadow",product="loan"}'] == "1.0"
    assert told['evenhand_mode{mode="live",product="loan"}'] == "0.0"
    assert told['evenhand_certificate_suspended{product="loan"}'] == "0.0"
    assert told["evenhand_database_up"] == "1.0"
    assert told["evenhand_failed_commits"] == "0.0"
    assert float(told["evenhand_refresh_age_seconds"]) >= 0
    assert float(told['evenhand_policy_age_seconds{product="loan"}']) >= 0


def test_a_database_that_is_away_is_a_gauge_too(bank, monkeypatch):
    def away():
        raise OSError

    monkeypatch.setattr(bank.ledger, "head", away)
    text = bank.service.metrics.text("bank", bank.service.health).decode()
    assert "evenhand_database_up 0.0" in text
    assert "evenhand_people{" not in text


def test_no_tenant_sees_what_another_asked_for(bank):
    """Counts of requests too, not only those of products."""
    before = bank.get("/metrics").text
    for number in range(7):
        bank.post("/v1/decisions", application(f"k{number}"), bank.rival)
    bank.post("/v1/outcomes", {"key": "k1", "label": 1}, bank.rival)
    bank.post("/v1/decisions", application("bad", features=[1, 2]), bank.rival)

    def counted(text):
        kinds = ("_total", "_count", "_bucket", "_people")
        return [line for line in text.splitlines() if any(kind in line for kind in kinds)]

    assert counted(bank.get("/metrics").text) == counted(before)
    assert 'evenhand_decisions_total{accept="true",mode="live"} 7.0' in (
        bank.get("/metrics", bank.rival).text
    )


def test_the_lag_of_labels_is_that_of_the_product(bank):
    assert "evenhand_label_lag_seconds{" not in bank.get("/metrics").text
    bank.post("/v1/decisions", application("k1"))
    bank.clock.now += 10
    bank.post("/v1/outcomes", {"key": "k1", "label": 1})
    bank.clock.now += 30
    text = bank.get("/metrics").text
    assert 'evenhand_label_lag_seconds{product="loan"} 30.0' in text
    assert 'evenhand_label_lag_seconds{product="card"}' not in text
