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
