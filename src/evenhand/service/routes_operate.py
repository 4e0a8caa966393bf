"""Routes for operators: kill switch, rollback, shadow mode, training, keys, erasure, confirming a
gap. One call each, all audited.
"""

from collections.abc import Callable

from fastapi import APIRouter

from evenhand.contracts import Json
from evenhand.ledger import NotFound
from evenhand.service import bodies
from evenhand.service.app import MayAdmin, Service, Serving
from evenhand.service.config import Product
from evenhand.service.in_force import InForce
from evenhand.service.keys import Key
from evenhand.service.operations import Operator

ROUTER = APIRouter(prefix="/v1", tags=["operating"])


def _shown(force: InForce) -> Json:
    return {
        "policy": force.policy.id,
        "epoch": force.policy.epoch,
        "mode": force.mode,
        "reason": force.reason,
    }


async def _operated(
    service: Service, key: Key, body: bodies.Operation, act: Callable[[Operator, Product], InForce]
) -> Json:
    """Off the event loop; what is in force afterwards."""
    product, operator = (
        service.desk.product(key.tenant, body.product),
        Operator(service.desk, body.by, body.note),
    )
    return _shown(await service.desk.off_loop(lambda: act(operator, product)))


@ROUTER.post("/kill")
async def kill(body: bodies.Operation, service: Serving, key: MayAdmin) -> Json:
    """A constant policy at once: the product's fallback, or `constant`."""
    return await _operated(
        service, key, body, lambda operator, it: operator.kill(it, body.constant)
    )


@ROUTER.post("/revive")
async def revive(body: bodies.Operation, service: Serving, key: MayAdmin) -> Json:
    """The kill switch off."""
    return await _operated(service, key, body, lambda operator, it: operator.revive(it))


@ROUTER.post("/rollback")
async def rollback(body: bodies.Operation, service: Serving, key: MayAdmin) -> Json:
    """Back to an earlier certified policy: `policy`, or the last one before the present."""
    return await _operated(
        service, key, body, lambda operator, it: operator.rollback(it, body.policy)
    )


@ROUTER.post("/shadow")
async def shadow(body: bodies.Operation, service: Serving, key: MayAdmin) -> Json:
    """Decide and log, do not act."""
    return await _operated(service, key, body, lambda operator, it: operator.shadow(it))


@ROUTER.post("/live")
async def live(body: bodies.Operation, service: Serving, key: MayAdmin) -> Json:
    """Shadow mode off."""
    return await _operated(service, key, body, lambda operator, it: operator.live(it))


@ROUTER.post("/train")
async def train(body: bodies.Operation, service: Serving, key: MayAdmin) -> Json:
    """Close the epoch now, train, certify and publish."""
    product = service.desk.product(key.tenant, body.product)

    def close() -> InForce:
        service.trainer(product).close()
        return service.desk.refresh(product)

    return _shown(await service.desk.off_loop(close))


@ROUTER.post("/erasures")
async def erase(body: bodies.Erasure, service: Serving, key: MayAdmin) -> Json:
    """Forget a person; the keys of their applications are Gone from then on."""
    number = await service.desk.off_loop(
        lambda: service.ledger.erase(key.tenant, body.person, body.by)
    )
    return {"decisions": number}


@ROUTER.post("/gap")
async def confirm_gap(body: bodies.Confirmation, service: Serving, _: MayAdmin) -> Json:
    """After a restore: what may be missing has been looked into; draw again."""
    await service.desk.off_loop(lambda: service.ledger.confirm_gap(body.by, body.note))
    return {"status": "ok"}


@ROUTER.post("/keys", status_code=201)
async def new_key(body: bodies.NewKey, service: Serving, key: MayAdmin) -> Json:
    """A new key of your tenant. The token is shown here and never again."""
    token = await service.desk.off_loop(
        lambda: service.keys.add(key.tenant, body.scopes, body.name)
    )
    return {"token": token, "scopes": sorted(set(body.scopes))}


@ROUTER.get("/keys")
async def list_keys(service: Serving, key: MayAdmin) -> Json:
    """The keys of your tenant, without their tokens."""
    found = service.keys.all(key.tenant)
    return {
        "keys": [
            {"id": k.id, "name": k.name, "scopes": sorted(k.scopes), "revoked": k.revoked}
            for k in found
        ],
    }


@ROUTER.delete("/keys/{key_id}")
async def revoke(key_id: str, service: Serving, key: MayAdmin) -> Json:
    """A key of your tenant opens nothing from now on."""
    if not await service.desk.off_loop(lambda: service.keys.revoke(key.tenant, key_id)):
        raise NotFound("this tenant has no such key.", hint="GET /v1/keys lists them.")
    return {"revoked": key_id}
