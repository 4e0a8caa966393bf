"""Routes for deciding and for reports about decisions."""

import time
from collections import Counter
from collections.abc import Sequence

from fastapi import APIRouter, Response

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.ledger import Answer, GroupTold, Label, Override, Refusal, Report, Settlement, Verdict
from evenhand.service import bodies
from evenhand.service.app import MayAdmin, MayDecide, MayObserve, Service, Serving, problem_response
from evenhand.service.desk import as_json
from evenhand.service.problems import of_refusal, problem

ROUTER = APIRouter(prefix="/v1")
JSON = "application/json"


@ROUTER.post("/decisions", tags=["deciding"])
async def decide(body: bodies.Asked, service: Serving, key: MayDecide) -> Response:
    """Decide about one application.

    Repeating it gives the same bytes, for ever; the same key with another body is a conflict.
    """
    answer = (await _decided(service, key.tenant, [body]))[0]
    if isinstance(answer, EvenhandError):
        raise answer
    return Response(
        answer.body, media_type=JSON, headers={"Evenhand-Replayed": str(answer.replayed).lower()}
    )


@ROUTER.post("/decisions/batch", tags=["deciding"])
async def decide_many(body: bodies.AskedMany, service: Serving, key: MayDecide) -> Response:
    """Decide about up to 1,000 in one transaction: answers and problems, in the order of the
    request.
    """
    answers = await _decided(service, key.tenant, body.decisions)
    parts = b",".join(as_json(answer, of_refusal) for answer in answers)
    return Response(b'{"decisions":[' + parts + b"]}", media_type=JSON)


async def _decided(
    service: Service, tenant: str, asked: Sequence[bodies.Asked]
) -> list[Answer | EvenhandError]:
    began, metrics = time.perf_counter(), service.metrics
    answers = await service.desk.decide(tenant, asked)
    metrics.seconds.observe(time.perf_counter() - began)
    for kind, times in Counter(map(_kind, answers)).items():
        if kind == "refused":
            metrics.refused.inc(times)
        elif kind == "replayed":
            metrics.replayed.inc(times)
        else:
            metrics.decisions.labels(*kind).inc(times)
    return answers


def _kind(answer: Answer | EvenhandError) -> str | tuple[str, str]:
    """By which answers are counted: refused, replayed, or (mode, accepted)."""
    if isinstance(answer, EvenhandError):
        return "refused"
    return (
        "replayed"
        if answer.replayed
        else (answer.drawn.mode, "true" if answer.drawn.accept else "false")
    )


@ROUTER.get("/decisions/{key}", tags=["deciding"])
async def stored(key: str, service: Serving, caller: MayDecide) -> Response:
    """The stored answer; 404 if there is none, 410 if the person has been erased."""
    answer = await service.desk.off_loop(lambda: service.ledger.find(caller.tenant, key))
    return Response(answer.body, media_type=JSON)


# reports


@ROUTER.post("/outcomes", tags=["outcomes"])
async def tell(body: bodies.Told, service: Serving, key: MayObserve) -> Response:
    """The outcome of an accepted person. Idempotent; a contradicting one is kept and marked
    disputed; one for a rejected person is refused (409) and quarantined."""
    return _one(await _reported(service, key.tenant, [(body.key, Label(body.label))]))


@ROUTER.post("/outcomes/batch", tags=["outcomes"])
async def tell_many(body: bodies.ToldMany, service: Serving, key: MayObserve) -> Json:
    """Up to 1,000 outcomes in one transaction: results and problems, in the order of the request."""
    found = await _reported(
        service, key.tenant, [(one.key, Label(one.label)) for one in body.outcomes]
    )
    return {"outcomes": [_verdict(one) for one in found]}


@ROUTER.post("/overrides", tags=["outcomes"])
async def override(body: bodies.OverrideTold, service: Serving, key: MayObserve) -> Response:
    """A human decided. The decision stays in the certificate as it was drawn, and counts at its
    worst where its label is lost; the claim is about the policy as drawn. An override that agrees
    with the draw is on record and changes nothing."""
    return _one(
        await _reported(
            service, key.tenant, [(body.key, Override(body.accept, body.by, body.note))]
        )
    )


@ROUTER.post("/groups", tags=["outcomes"])
async def tell_group(body: bodies.GroupBody, service: Serving, key: MayObserve) -> Response:
    """A group that became known after the decision, of accepted and rejected people alike."""
    return _one(await _reported(service, key.tenant, [(body.key, GroupTold(body.group))]))


@ROUTER.post("/settlements", tags=["outcomes"])
async def settle(body: bodies.SettlementTold, service: Serving, key: MayAdmin) -> Response:
    """Which of two disputed labels holds."""
    return _one(
        await _reported(
            service, key.tenant, [(body.key, Settlement(body.label, body.by, body.note))]
        )
    )


async def _reported(
    service: Service, tenant: str, told: Sequence[tuple[str, Report]]
) -> list[Verdict | Refusal]:
    rows = [(tenant, key, report) for key, report in told]
    found = await service.desk.off_loop(lambda: service.ledger.report_many(rows))
    for one in found:
        service.metrics.outcomes.labels("refused" if isinstance(one, Refusal) else one.result).inc()
    return found


def _one(found: Sequence[Verdict | Refusal]) -> Response:
    document = _verdict(found[0])
    if "type" in document:
        return problem_response(document)
    return Response(_encoded(document), media_type=JSON)


def _verdict(found: Verdict | Refusal) -> Json:
    if isinstance(found, Refusal):
        return of_refusal(found)
    if found.result == "quarantined":
        return problem(
            409,
            "quarantined",
            "this person was rejected, so no outcome can have been seen; it was put into quarantine and is never learned from.",
            hint="check the key; if a human accepted the person, report an override.",
            field="label",
            law="labels exist for accepted people alone",
        )
    document = {"result": found.result, "status": found.standing.status, "row": found.seq}
    return document | ({"overruled": True} if found.standing.overruled else {})


def _encoded(document: Json) -> bytes:
    return canonical(document).encode()
