"""Routes for looking: certificate, policies with their lineage, plan, explanation, windows, head,
health, metrics.
"""

from dataclasses import asdict

from fastapi import APIRouter, Response

from evenhand.contracts import Json
from evenhand.fairness.certificate import Certificate
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger import NotFound, Policy
from evenhand.service import bodies
from evenhand.service.app import MayAdmin, MayAudit, Serving, problem_response
from evenhand.service.board import AS_DRAWN
from evenhand.service.config import Product
from evenhand.service.desk import Desk
from evenhand.service.explaining import explain
from evenhand.service.older_rules import marked
from evenhand.service.problems import problem

ROUTER = APIRouter()


@ROUTER.get("/health", tags=["looking"])
async def health(service: Serving) -> Response:
    """Whether decisions can be made durable. Needs no key, and says nothing else."""
    broken = service.ledger.broken
    if broken is None:
        return Response(b'{"status":"ok"}', media_type="application/json")
    return problem_response(
        problem(
            503,
            "ledger-unavailable",
            "nothing can be written.",
            hint="look at the disk, then restart.",
        )
    )


@ROUTER.get("/metrics", tags=["looking"])
async def metrics(service: Serving, key: MayAudit) -> Response:
    """Prometheus' text format."""
    text = await service.desk.off_loop(lambda: service.metrics.text(key.tenant))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@ROUTER.get("/v1/certificate", tags=["looking"])
async def certificate(product: str, service: Serving, key: MayAudit) -> Json:
    """The certificate of the policy in force, with its claim in one sentence."""
    chosen = service.desk.product(key.tenant, product)
    return await service.desk.off_loop(lambda: current_certificate(service.desk, chosen))


def current_certificate(desk: Desk, product: Product) -> Json:
    """The certificate that was published with the policy in force; a constant outside the lineage
    has none.
    """
    force = desk.in_force(product)
    rows = [
        r
        for r in desk.ledger.certificates(product.tenant, product.name)
        if r.epoch == force.policy.epoch
    ]
    if not rows:
        raise NotFound(
            "the policy in force has no certificate of its own: it is a constant, whose gap is exactly 0.",
            hint="GET /v1/policies shows what is in force and why.",
        )
    found = Certificate.from_json(rows[-1].document)
    words = {
        "claim": found.claim,
        "text": found.describe(),
        "epoch": rows[-1].epoch,
        "at": rows[-1].at,
    }
    mark = marked(desk.ledger, product, force.policy)
    return {"certificate": rows[-1].document, "mode": force.mode, **words, **mark}


@ROUTER.get("/v1/policies", tags=["looking"])
async def policies(product: str, service: Serving, key: MayAudit) -> Json:
    """Every policy with its parent, signature and words, oldest first; which one is in force, how,
    and why.
    """
    chosen = service.desk.product(key.tenant, product)

    def read() -> Json:
        force = service.desk.in_force(chosen)
        listed = service.ledger.policies(key.tenant, product)
        return {
            "in_force": {"policy": force.policy.id, "mode": force.mode, "reason": force.reason},
            "public_key": service.ledger.keyring.public_key,
            "policies": [_policy(one, chosen) for one in listed],
        }

    return await service.desk.off_loop(read)


def _policy(policy: Policy, product: Product) -> Json:
    words = policy_from_json(policy.document).describe(product.features)
    return {**policy.signed, "signature": policy.signature, "row": policy.seq, "words": words}


@ROUTER.get("/v1/plan", tags=["looking"])
async def where_it_stands(product: str, service: Serving, key: MayAudit) -> Json:
    """Where the epoch stands, when the next one is due, what is still missing, and which decisions
    people overruled.
    """
    chosen = service.desk.product(key.tenant, product)

    def read() -> Json:
        learner, tally = service.trainer(chosen).learner, service.tally(chosen)
        report = learner.report
        tally.refresh(0)
        counts = service.ledger.counts(key.tenant, product)
        due = learner.epoch.first_round + learner.epoch.rounds
        return {
            "epoch": learner.epoch.number,
            "phase": learner.epoch.phase,
            "decided": counts.usable,
            "next_epoch_after": min(due, 2**53),
            "to_go": max(min(due, 2**53) - counts.usable, 0),
            "learned_weight": learner.learned_weight,
            "notes": list(report.notes),
            "forecast": list(report.forecast),
            "overruled": [asdict(line) for line in tally.overruled_lines()],
            "as_drawn": AS_DRAWN,
        }

    return await service.desk.off_loop(read)


@ROUTER.post("/v1/plan", tags=["looking"])
async def launch_plan(body: bodies.LaunchQuestion, service: Serving, key: MayAudit) -> Json:
    """What a launch under the product's promise is expected to cost and to bring; simulated, so it
    takes seconds.
    """
    from evenhand.fairness.rates import as_rates
    from evenhand.planning import plan
    from evenhand.words import Prices

    chosen = service.desk.product(key.tenant, body.product)
    found = await service.desk.off_loop(
        lambda: plan(
            limit=chosen.limit,
            failure_probability=chosen.delta,
            group_shares=body.group_shares,
            bad_rates=body.bad_rates,
            auc=body.auc,
            horizon=body.horizon,
            prices=Prices(chosen.price_false_accept, chosen.price_false_reject),
            rate=as_rates(chosen.rates),
            lives=2,
        )
    )
    return dict(found.to_json())


@ROUTER.get("/v1/decisions/{key}/explanation", tags=["looking"])
async def explanation(key: str, service: Serving, caller: MayAudit) -> Json:
    """Why: the rules with their weights and answers, the coin, what would have changed it."""
    found = await service.desk.off_loop(lambda: explain(service.desk, caller.tenant, key))
    return found.to_json()


@ROUTER.get("/v1/windows", tags=["looking"])
async def windows(service: Serving, _: MayAudit) -> Json:
    """The windows and the hashes to which their secrets are committed."""
    found = await service.desk.off_loop(service.ledger.windows)
    return {"windows": [asdict(window) for window in found]}


@ROUTER.post("/v1/windows/{name}/reveal", tags=["operating"])
async def reveal(name: str, service: Serving, key: MayAdmin) -> Json:
    """The secret of a window that has ended, for an auditor; recorded."""
    secret = await service.desk.off_loop(lambda: service.ledger.reveal(name, f"key {key.id}"))
    return {"window": name, "secret": secret.hex()}


@ROUTER.get("/v1/head", tags=["looking"])
async def head(service: Serving, _: MayAudit) -> Json:
    """The signed end of the chain: keep it where the operator cannot change it."""
    found = await service.desk.off_loop(service.ledger.signed_head)
    return found.to_json()
