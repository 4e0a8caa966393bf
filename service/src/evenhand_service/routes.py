"""The HTTP API: deciding, outcomes, looking and operating. The dashboard has its own routes."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse, PlainTextResponse

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.fairness.certificate import Certificate
from evenhand.fairness.rates import as_rates
from evenhand.planning import plan
from evenhand.words import Prices
from evenhand_service import schemas
from evenhand_service.audit_pack import policies_json
from evenhand_service.bodies import (
    TakesConfirmation,
    TakesDecision,
    TakesDecisions,
    TakesErasure,
    TakesGroup,
    TakesKeyRotation,
    TakesNewKey,
    TakesOperation,
    TakesOutcome,
    TakesOutcomes,
    TakesOverride,
    TakesQuestion,
    TakesSettlement,
    parsed_in_turn,
)
from evenhand_service.decider import Action, ActivePolicy, stored_mixture
from evenhand_service.explanations import AS_DRAWN, explain
from evenhand_service.keys import require_scope
from evenhand_service.ledger import (
    GroupReport,
    Label,
    LedgerUnavailable,
    NotFound,
    Override,
    PolicyRecord,
    Refusal,
    Report,
    Settlement,
    Verdict,
)
from evenhand_service.problems import PROBLEMS, problem, problem_response, refusal_problem
from evenhand_service.request_guard import (
    Caller,
    MayAdmin,
    MayAudit,
    MayDecide,
    MayObserve,
    MayOverride,
    QuickRoutes,
)
from evenhand_service.traces import span

JSON = "application/json"


def refuses(*statuses: int) -> dict[int | str, Json]:
    """What the OpenAPI document says of refusals by problem documents."""
    titles: dict[int, list[str]] = {}
    for status, title in PROBLEMS.values():
        titles.setdefault(status, []).append(title)
    return {
        status: {
            "description": "; ".join(titles[status]),
            "content": {
                "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/ProblemDocument"}
                }
            },
        }
        for status in statuses
    }


class CanonicalResponse(JSONResponse):
    """What a route returns, as canonical JSON: one writer for all that leaves the service."""

    def render(self, content: object) -> bytes:
        """The text, in UTF-8."""
        return canonical(content).encode()


ROUTER = APIRouter(
    responses=refuses(400, 401, 403, 405, 413, 415, 421, 422, 429, 503),
    default_response_class=CanonicalResponse,
)

# deciding


@ROUTER.post(
    "/v1/decisions",
    tags=["deciding"],
    response_model=schemas.DecisionResponse,
    responses=refuses(404, 409, 410),
)
async def decide(caller: MayDecide, body: TakesDecision) -> Response:
    """Decide about one application.

    Repeating it gives the same bytes, for ever; the same key with another body is a conflict.
    """
    return await _decided(caller, [body])


@ROUTER.post("/v1/decisions/batch", tags=["deciding"], response_model=schemas.DecisionBatchResponse)
async def decide_many(caller: MayDecide, body: TakesDecisions) -> Response:
    """Decide about up to 1,000 in one transaction: answers and problems, in the order of the
    request.
    """
    return await _decided(caller, body.decisions, many=True)


async def _decided(
    caller: Caller, asked: Sequence[schemas.DecisionRequest], *, many: bool = False
) -> Response:
    began = time.perf_counter()
    metrics = caller.service.metrics
    still_allowed = partial(caller.service.key_guard.require_valid, caller.key)
    with span("decide", applications=len(asked)):
        answers = await caller.service.decider.decide(asked, still_allowed)
    metrics.seconds.observe(time.perf_counter() - began)
    drawn: Counter[tuple[str, str]] = Counter()
    for answer in answers:
        if isinstance(answer, EvenhandError):
            metrics.refused.inc()
        elif answer.replayed:
            metrics.replayed.inc()
        else:
            drawn[answer.drawn.mode, "true" if answer.drawn.accept else "false"] += 1
    for labels, times in drawn.items():
        metrics.decisions.labels(*labels).inc(times)
    if many:
        parts = [
            canonical(refusal_problem(one)).encode() if isinstance(one, EvenhandError) else one.body
            for one in answers
        ]
        return Response(b'{"decisions":[' + b",".join(parts) + b"]}", media_type=JSON)
    (answer,) = answers
    if isinstance(answer, EvenhandError):
        return problem_response(refusal_problem(answer))
    replayed = {"Evenhand-Replayed": "true" if answer.replayed else "false"}
    return Response(answer.body, media_type=JSON, headers=replayed)


async def _decide_quickly(caller: Caller, body: bytes) -> Response:
    """`decide`, without FastAPI."""
    require_scope(caller.key, "decide")
    turn = caller.service.large_bodies
    return await _decided(caller, [await parsed_in_turn(schemas.DecisionRequest, body, turn)])


async def _decide_many_quickly(caller: Caller, body: bytes) -> Response:
    """`decide_many`, without FastAPI."""
    require_scope(caller.key, "decide")
    asked = await parsed_in_turn(schemas.DecisionBatch, body, caller.service.large_bodies)
    return await _decided(caller, asked.decisions, many=True)


QUICK: QuickRoutes = {
    ("POST", "/v1/decisions"): _decide_quickly,
    ("POST", "/v1/decisions/batch"): _decide_many_quickly,
}
"""The routes that are asked most, answered before FastAPI, whose routing and dependencies take half
of the time of a single decision. They do what the routes do: the same model, parser and scope.
"""


@ROUTER.get(
    "/v1/decisions/{key}",
    tags=["deciding"],
    response_model=schemas.DecisionResponse,
    responses=refuses(404, 410),
)
async def stored(key: schemas.PathText, caller: MayDecide) -> Response:
    """The stored answer; 404 if there is none, 410 if the person has been erased."""
    answer = await asyncio.to_thread(caller.service.ledger.find, key)
    return Response(answer.body, media_type=JSON)


# outcomes


@ROUTER.post("/v1/outcomes", tags=["outcomes"], responses=refuses(404, 409, 410))
async def report_outcome(caller: MayObserve, body: TakesOutcome) -> Response:
    """The outcome of an accepted person. Idempotent; a contradicting one is kept and marked
    disputed; one for a rejected person is refused (409) and quarantined."""
    return await _reported(caller, body.key, Label(body.label))


@ROUTER.post("/v1/outcomes/batch", tags=["outcomes"])
async def report_outcomes(caller: MayObserve, body: TakesOutcomes) -> Json:
    """Up to 1,000 outcomes in one transaction: results and problems, in the order of the request.
    """  # fmt: skip
    reports = [(one.key, Label(one.label)) for one in body.outcomes]
    return {"outcomes": await _report_many(caller, reports)}


@ROUTER.post("/v1/overrides", tags=["outcomes"], responses=refuses(404, 409, 410))
async def override(caller: MayOverride, body: TakesOverride) -> Response:
    """A human decided. The decision stays in the certificate as it was drawn, and counts at its
    worst where its label is lost; the claim is about the policy as drawn. An override that agrees
    with the draw is on record and changes nothing."""
    return await _reported(caller, body.key, Override(body.accept, **caller.signed(body)))


@ROUTER.post("/v1/groups", tags=["outcomes"], responses=refuses(404, 409, 410))
async def tell_group(caller: MayObserve, body: TakesGroup) -> Response:
    """A group that became known after the decision, of accepted and rejected people alike."""
    return await _reported(caller, body.key, GroupReport(body.group))


@ROUTER.post("/v1/settlements", tags=["outcomes"], responses=refuses(404, 409, 410))
async def settle(caller: MayAdmin, body: TakesSettlement) -> Response:
    """Which of two disputed labels holds; 409 where no two labels contradict each other."""
    await caller.require_second("settlement", key=body.key, label=body.label)
    return await _reported(caller, body.key, Settlement(body.label, **caller.signed(body)))


async def _reported(caller: Caller, key: str, report: Report) -> Response:
    (document,) = await _report_many(caller, [(key, report)])
    if "type" in document:
        return problem_response(document)
    return Response(canonical(document).encode(), media_type=JSON)


async def _report_many(caller: Caller, reports: Sequence[tuple[str, Report]]) -> list[Json]:
    """The result or the problem of each report, as JSON."""

    def document(verdict: Verdict | Refusal) -> Json:
        if isinstance(verdict, Refusal):
            return refusal_problem(verdict)
        if verdict.result == "quarantined":
            return problem(
                "quarantined",
                "this person was rejected, so no outcome can have been seen; it was put into "
                "quarantine and is never learned from.",
                hint="check the key; if a human accepted the person, report an override.",
                field="label",
                requirement="labels exist for accepted people alone",
            )
        standing = verdict.standing
        entered = {"result": verdict.result, "status": standing.status, "row": verdict.seq}
        return entered | ({"overruled": True} if standing.overruled else {})

    service = caller.service
    ledger = caller.service.ledger
    with span("observe", reports=len(reports)):
        verdicts = await service.reporting.run(caller.key.id, ledger.report_many, reports)
    for one in verdicts:
        result = "refused" if isinstance(one, Refusal) else one.result
        service.metrics.outcomes.labels(result).inc()
    return [document(one) for one in verdicts]


# looking


@ROUTER.get("/health", tags=["looking"])
async def health(request: Request) -> Response:
    """Whether decisions can be made durable. Needs no key, and says nothing else."""
    if await request.app.state.service.health.writes():
        return Response(b'{"status":"ok"}', media_type=JSON)
    hint = "look at the database or the disk; GET /health/ready says more."
    return problem_response(problem("ledger-unavailable", "nothing can be written.", hint=hint))


@ROUTER.get("/health/live", tags=["looking"])
async def health_live() -> Response:
    """Whether the process answers; if it does not, restart it. Needs no key."""
    return Response(b'{"status":"ok"}', media_type=JSON)


@ROUTER.get("/health/ready", tags=["looking"])
async def health_ready(request: Request) -> Response:
    """Whether the service can decide, with a word each on the database, the disk, the refresh of
    what is active, the certificates and the witnesses; if it cannot (503), send nobody here. Needs
    no key.
    """
    words = await request.app.state.service.health.ready()
    if words["ready"]:
        return Response(canonical(words).encode(), media_type=JSON)
    bad = ", ".join(f"{name} {word}" for name, word in words.items() if name != "ready")
    document = problem(
        "not-ready", f"{bad}.", hint="service/docs/operating.md says what to do.", **words
    )
    return problem_response(document)


@ROUTER.get("/metrics", tags=["looking"], response_class=PlainTextResponse)
async def metrics(caller: MayAudit) -> Response:
    """Prometheus' text format."""
    service = caller.service
    text = await caller.look(service.metrics.text, service.health)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@ROUTER.get("/v1/certificate", tags=["looking"], responses=refuses(404))
async def certificate(product: schemas.ProductName, caller: MayAudit) -> Json:
    """The certificate of the policy in force, with its claim in one sentence."""
    decider = caller.service.decider
    ledger = caller.service.ledger
    chosen = decider.product(product)

    def read() -> Json:
        active = decider.active(chosen)
        row = ledger.certificate_of(active.policy)
        if row is None:
            raise NotFound(
                "the policy in force has no certificate of its own: "
                "it is a constant, whose gap is exactly 0.",
                hint="GET /v1/policies shows what is in force and why.",
            )
        issued = Certificate.from_json(row.document)
        return {
            "certificate": row.document,
            "mode": active.mode,
            "claim": issued.claim,
            "text": issued.describe(),
            "epoch": row.epoch,
            "at": row.at,
        }

    return await caller.look(read)


@ROUTER.get("/v1/policies", tags=["looking"], responses=refuses(404))
async def policies(product: schemas.ProductName, caller: MayAudit) -> Json:
    """Every policy with its parent, signature and words, oldest first, and the fitted models in it,
    each with the version of the settings' model that fitted it; which one is in force, how, and
    why.
    """
    decider = caller.service.decider
    ledger = caller.service.ledger
    chosen = decider.product(product)

    def fitted_models(policy: PolicyRecord) -> list[Json]:
        fitted_by = policy.info.get("fitted_by", {})
        held = stored_mixture(ledger, policy, chosen.trusted).models
        return [{"sha256": one, "fitted_by": fitted_by.get(one)} for one in held]

    def read() -> Json:
        active = decider.active(chosen)
        return {
            "in_force": {"policy": active.policy.id, "mode": active.mode, "reason": active.reason},
            "public_key": ledger.keyring.public_key,
            "policies": [
                document | {"models": fitted_models(policy)}
                for document, policy in zip(
                    policies_json(ledger, chosen), ledger.policies(product), strict=True
                )
            ],
        }

    return await caller.look(read)


@ROUTER.get("/v1/plan", tags=["looking"], responses=refuses(404))
async def status(product: schemas.ProductName, caller: MayAudit) -> Json:
    """Where the epoch stands, when the next one is due, what is still missing, and which decisions
    people overruled. Notes and forecast are of the last closing, and speak of the people who had
    been `closed` then.
    """
    service = caller.service
    service.decider.product(product)  # or it is not found

    def read() -> Json:
        counts = service.counts[product]
        counts.refresh(0)
        decided = service.ledger.counts(product).usable
        # from the newest policy on record, for another replica may be the one that trains
        policies = service.ledger.policies(product)
        trained = [policy for policy in policies if policy.in_lineage and "rounds" in policy.info]
        if not trained:
            raise NotFound(
                f"no policy of {product!r} was published by a trainer yet.",
                hint="start a replica that trains, or POST /v1/train.",
            )
        newest = trained[-1]
        info = trained[-1].info
        due = min(info["first_round"] + info["rounds"], 2**53)
        return {
            "epoch": newest.epoch,
            "phase": info["phase"],
            "decided": decided,
            "next_epoch_after": due,
            "to_go": max(due - decided, 0),
            "learned_weight": info["learned_weight"],
            "closed": info["closing"]["people"],
            "notes": [note["text"] for note in info.get("notes", [])],
            "forecast": info.get("forecast", []),
            "overruled": [asdict(line) for line in counts.overruled_lines()],
            "as_drawn": AS_DRAWN,
        }

    return await caller.look(read)


@ROUTER.post("/v1/plan", tags=["looking"], responses=refuses(404))
async def launch_plan(caller: MayAudit, body: TakesQuestion) -> Json:
    """What a launch under the product's guarantee is expected to cost and to bring; simulated, so
    it takes seconds. One is simulated at a time; who asks for many at once is asked to wait (429).
    """
    chosen = caller.service.decider.product(body.product)
    expected = await caller.service.planning.run(
        caller.key.id,
        plan,
        limit=chosen.limit,
        delta=chosen.delta,
        group_shares=body.group_shares,
        bad_rates=body.bad_rates,
        auc=body.auc,
        horizon=body.horizon,
        prices=Prices(chosen.price_false_accept, chosen.price_false_reject),
        rate=as_rates(chosen.rates),
        runs=2,
    )
    return dict(expected.to_json())


@ROUTER.get("/v1/decisions/{key}/explanation", tags=["looking"], responses=refuses(404, 410))
async def explanation(key: schemas.PathText, caller: MayAudit) -> Json:
    """Why: the rules with their weights and answers, the coin, what would have changed it."""
    explained = await caller.look(explain, caller.service.decider, key)
    return explained.to_json()


@ROUTER.get("/v1/windows", tags=["looking"])
async def windows(caller: MayAudit) -> Json:
    """The windows and the hashes to which their secrets are committed."""
    listed = await caller.look(caller.service.ledger.windows)
    return {"windows": [asdict(window) for window in listed]}


@ROUTER.post("/v1/windows/{name}/reveal", tags=["operating"], responses=refuses(404, 409))
async def reveal(name: schemas.PathText, caller: MayAdmin) -> Json:
    """The secret of a window that has ended, for an auditor; recorded."""
    secret = await caller.operate(caller.service.ledger.reveal, name, caller.by)
    return {"window": name, "secret": secret.hex()}


@ROUTER.get("/v1/head", tags=["looking"])
async def head(caller: MayAudit) -> Json:
    """The signed end of the chain: keep it where the operator cannot change it."""
    return (await caller.look(caller.service.ledger.signed_head)).to_json()


# operating: one call each, all on record


SWITCHES: Mapping[Action, str] = {
    "kill": "A constant policy at once: the product's fallback, or `constant`.",
    "revive": "The kill switch off.",
    "rollback": "Back to an earlier certified policy: `policy`, or the last one before the "
    "present.",
    "shadow": "Decide and log, do not act.",
    "live": "Shadow mode off.",
}


def _add_switch(action: Action) -> None:
    @ROUTER.post(
        f"/v1/{action}",
        name=action,
        description=SWITCHES[action],
        tags=["operating"],
        responses=refuses(404, 409),
    )
    async def switch(caller: MayAdmin, body: TakesOperation) -> Json:
        decider = caller.service.decider
        product = decider.product(body.product)
        if action in ("kill", "rollback"):
            asked = {"product": body.product, "policy": body.policy, "constant": body.constant}
            await caller.require_second(action, **asked)
        operate = partial(decider.operate, product, action, **caller.signed(body))
        return _active_json(
            await caller.operate(operate, policy=body.policy, constant=body.constant)
        )


for _action in SWITCHES:
    _add_switch(_action)


@ROUTER.post("/v1/train", tags=["operating"], responses=refuses(404, 409))
async def train(caller: MayAdmin, body: TakesOperation) -> Json:
    """Close the epoch now, train, certify and publish."""
    service = caller.service
    product = service.decider.product(body.product)
    await service.training.run(caller.key.id, service.trainer(product).close)
    await service.decider.current()
    return _active_json(service.decider.active(product))


def _active_json(active: ActivePolicy) -> Json:
    return {
        "policy": active.policy.id,
        "epoch": active.policy.epoch,
        "mode": active.mode,
        "reason": active.reason,
    }


@ROUTER.post("/v1/erasures", tags=["operating"], responses=refuses(404, 409))
async def erase(caller: MayAdmin, body: TakesErasure) -> Json:
    """Forget a person; the keys of their applications are Gone from then on."""
    service = caller.service
    await caller.require_second("erasure", person=body.person)
    erase = caller.service.ledger.erase
    person = (body.person, caller.by)
    return {"decisions": await service.reporting.run(caller.key.id, erase, *person)}


@ROUTER.post("/v1/gap", tags=["operating"], responses=refuses(404, 409))
async def confirm_gap(caller: MayAdmin, body: TakesConfirmation) -> Json:
    """After a restore: what may be missing has been looked into; draw again."""
    signed = caller.signed(body)
    await caller.operate(caller.service.ledger.confirm_gap, **signed)
    return {"status": "ok"}


@ROUTER.post("/v1/keys", status_code=201, tags=["operating"])
async def new_key(request: Request, caller: MayAdmin, body: TakesNewKey) -> Json:
    """A new key. The token is shown here and never again."""
    await _require_present(request)
    keys = caller.service.keys
    token = await caller.operate(keys.add, body.scopes, body.name, caller.by, body.days)
    return {"token": token, "scopes": sorted(set(body.scopes))}


@ROUTER.post(
    "/v1/keys/{key_id}/rotate", status_code=201, tags=["operating"], responses=refuses(404)
)
async def rotate_key(
    request: Request, key_id: schemas.PathText, caller: MayAdmin, body: TakesKeyRotation
) -> Json:
    """The successor of a key, with its name and scopes; the old one goes on for a while. The token
    is shown here and never again."""
    await _require_present(request)
    rotate = caller.service.keys.rotate
    token = await caller.operate(rotate, key_id, caller.by, body.days, body.overlap_days)
    if token is None:
        raise NotFound("there is no such valid key.", hint="GET /v1/keys lists them.")
    return {"token": token}


async def _require_present(request: Request) -> None:
    """Nothing is made for a client who has gone: while this process was paused, say, its proxy gave
    up. A key that nobody is shown would open all the same.
    """
    await asyncio.sleep(0)  # so that the end of the connection, which came after the request, is
    await asyncio.sleep(0)  # read before it is asked for
    if await request.is_disconnected():
        raise LedgerUnavailable("the client has gone; nothing was done.", hint="ask again.")


@ROUTER.get("/v1/keys", tags=["operating"])
async def list_keys(caller: MayAdmin) -> Json:
    """The keys, without their tokens."""
    return {
        "keys": [
            {
                "id": k.id,
                "name": k.name,
                "scopes": sorted(k.scopes),
                "ends": k.ends,
                "revoked": k.revoked,
            }
            for k in caller.service.keys.all()
        ]
    }


@ROUTER.delete("/v1/keys/{key_id}", tags=["operating"], responses=refuses(404))
async def revoke(key_id: schemas.PathText, caller: MayAdmin) -> Json:
    """A key opens nothing from now on."""
    if not await caller.operate(caller.service.keys.revoke, key_id, caller.by):
        raise NotFound("there is no such key.", hint="GET /v1/keys lists them.")
    return {"revoked": key_id}
