"""The service in a process: real, a mutant that answers before it commits, or dry (the same application without any write)."""

import sys
import time
from pathlib import Path

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.ledger import Answer, Drawn, Ledger, WindowPlan
from evenhand.ledger.writer import Writer, deliver, perform
from evenhand.policies import Mixture
from evenhand.service import create_app, load_settings, render
from evenhand.service.opening import open_keyring, open_keys
from evenhand.service.running import server


class Hasty(Writer):
    """The defect: results leave before the commit."""

    def _transact(self, connection, jobs):
        with connection.begin() as handle:
            transaction = self._begin(connection)
            perform(transaction, jobs, self._draw)
            deliver([job for job in jobs if job.asked])
            transaction.flush()
            time.sleep(0.02)
            handle.commit()


class HastyLedger(Ledger):
    writer_class = Hasty


class DryLedger(Ledger):
    """Decides and renders, stores nothing."""

    async def decide_async(self, asked):
        return [Answer(render(drawn), drawn) for drawn in (_drawn(a, t) for a, t in asked)]


def _drawn(a, terms):
    return Drawn(
        1, 0.0, a.tenant, a.key, a.person, a.product, "w1", 0.5, terms.acceptance, terms.acceptance > 0.5,
        terms.policy, terms.epoch, terms.audit_weight, False, True, terms.mode,
    )  # fmt: skip


KINDS = {"real": Ledger, "mutant": HastyLedger, "dry": DryLedger}


def main(config, kind):
    settings = load_settings(Path(config))
    keys, fresh = open_keys(settings)
    if fresh:
        (Path(config).parent / "token").write_text(fresh["bank"])
    where = settings.ledger if kind != "dry" else settings.ledger + ".dry"
    ledger = KINDS[kind].open(
        where, keyring=open_keyring(settings), clock=time.time, windows=WindowPlan(30 * 86400.0), render=render
    )
    app = create_app(ledger, settings, keys, train=False)
    service = app.app.state.service
    service.begin()
    product = settings.products[0]
    if service.desk.in_force(product).policy.epoch == 1:  # a coin, so that draws matter
        first = service.desk.in_force(product).policy
        coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5)).to_json()
        ledger.publish("bank", "loan", coin, epoch=2, parent=first.id)
        service.desk.refresh(product)
    server(app, settings).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
