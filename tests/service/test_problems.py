"""Refusals as problem documents, which repeat no group."""

from tests.service.bank import application


def test_no_problem_repeats_a_group(bank):
    canary = "canary-group-7f"
    for body in (
        application(group=[canary]),
        application(group={"a": canary}),
        application(features=[canary], group=canary),
        application(group=canary * 30),
        {"key": "k", "group": canary},
    ):
        assert canary not in bank.post("/v1/decisions", body).text


def test_unknown_paths_and_methods_are_problems(bank):
    for found in (bank.client.get("/nothing"), bank.client.put("/v1/decisions")):
        assert found.headers["content-type"] == "application/problem+json"
        assert found.status_code in (404, 405)


def test_nothing_durable_means_no_answer(bank):
    bank.post("/v1/decisions", application("before"))
    bank.ledger._writer._stopped(OSError("disk full"))
    for refused in (
        bank.post("/v1/decisions", application()),
        bank.post("/v1/outcomes", {"key": "before", "label": 1}),
    ):
        assert refused.status_code == 503
        assert refused.json()["type"].endswith("ledger-unavailable")
    assert bank.client.get("/health").status_code == 503
    bank.ledger._writer._broken = None
    bank.ledger._writer._disk_failed = False
