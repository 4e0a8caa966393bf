"""Refusals as problem documents, which repeat no group."""

import pytest
from service.tests.bank import application

from evenhand.errors import InvalidInput
from evenhand_service.ledger import Conflict, Damaged, Gone, LedgerLocked, LedgerUnavailable
from evenhand_service.problems import PROBLEMS, refusal_problem, validation_problem


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
    for found in (bank.get("/nothing"), bank.call("PUT", "/v1/decisions")):
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
    bank.ledger._writer.broken = None
    bank.ledger._writer._disk_failed = False


@pytest.mark.parametrize(
    ("refusal", "status", "kind"),
    [
        (Conflict("c."), 409, "conflict"),
        (Gone("g."), 410, "gone"),
        (LedgerLocked("l."), 503, "ledger-locked"),
        (LedgerUnavailable("u."), 503, "ledger-unavailable"),
        (Damaged("d."), 503, "ledger-unavailable"),
        (InvalidInput("i.", hint="h."), 422, "invalid"),
    ],
)
def test_every_refusal_has_a_kind(refusal, status, kind):
    document = refusal_problem(refusal)
    assert document["type"] == f"urn:evenhand:problem:{kind}"
    assert (document["status"], document["title"]) == PROBLEMS[kind]
    assert document["detail"] == refusal.sentence
    assert document.get("hint") == refusal.hint
    assert document["status"] == status


def test_a_value_is_repeated_only_where_it_can_be_no_secret():
    errors = [
        {"type": "x", "loc": ("body", name), "msg": "wrong", "input": "canary"}
        for name in ("label", "group", "key", "person")
    ]
    document = validation_problem(errors)
    assert [one.get("value") for one in document["errors"]] == ["canary", None, None, None]
    assert document["detail"] == "label: wrong. (and 3 more)"


def test_the_name_of_a_field_is_printed_short_and_plain():
    error = {"type": "x", "loc": ("body", "a\x07" + "b" * 100), "msg": "Value error, wrong"}
    document = validation_problem([error])
    assert document["field"] == "a?" + "b" * 58
    assert document["requirement"] == "wrong"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"features": "x"}, "features"),
        ({"features": [1, "x"]}, "features.1"),
        ({"features": {"score": "x"}}, "features.score"),
        ({"group": ["a"]}, "group"),
        ({"group": 2**60}, "group"),
        ({"prices": {"false_accept": -1, "false_reject": 1}}, "prices.false_accept"),
        ({"int": 1}, "int"),
        ({"key": ""}, "key"),
    ],
)
def test_a_refusal_names_our_fields_and_not_pydantic_s(bank, change, field):
    refused = bank.post("/v1/decisions", {**application(), **change})
    assert refused.status_code == 422
    assert field in [one["field"] for one in refused.json()["errors"]]
    for inner in ("constrained", "list[", "dict[", "function-", "tagged", "lax-or"):
        assert inner not in refused.text


def test_a_wrong_method_is_told_every_method_of_the_path(bank):
    for path, allowed in (
        ("/v1/keys", "GET, POST"),
        ("/v1/head", "GET"),
        ("/v1/decisions/batch", "POST"),  # although it could be the key of a decision
    ):
        refused = bank.client.options(path, headers={"Authorization": f"Bearer {bank.all}"})
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
