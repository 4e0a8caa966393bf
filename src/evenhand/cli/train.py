"""`evenhand train`: close an epoch, learn from the ledger, certify, publish. For services that run
with --no-train.
"""

import os
import socket
from typing import TYPE_CHECKING

import click

from evenhand.cli.audit import CONFIG

if TYPE_CHECKING:
    from evenhand.service import Settings


@click.command("train")
@CONFIG
@click.option("--product", metavar="NAME", help="Only this product.  [default: all]")
@click.option("--now", is_flag=True, help="Close the epoch even if it is not full.")
def command(settings: "Settings", product: str | None, now: bool) -> None:
    """Close the epoch of each product that is due, train, certify and publish.

    Two trainers never publish the same epoch: a lease with a fencing token and a compare-and-swap
    on the lineage see to that. On SQLite the service itself trains, because the ledger belongs to
    one process; with PostgreSQL run this from cron or beside replicas.

    \b
    Example
      evenhand train --config service.toml --now
    """
    from evenhand.errors import InvalidInput
    from evenhand.ledger import SystemClock
    from evenhand.service import Trainer
    from evenhand.service.server import open_ledger

    chosen = [one for one in settings.products if product in (None, one.name)]
    if not chosen:
        raise InvalidInput(f"the settings have no product {product!r}.")
    with open_ledger(settings, SystemClock()) as ledger:
        for one in chosen:
            trainer = Trainer(ledger, one, f"{socket.gethostname()}:{os.getpid()}")
            trainer.begin()
            older = trainer.older_rules
            published = trainer.close() if now else trainer.close_if_due()
            trainer.release()
            state = "not due"
            if published is not None:
                state = f"epoch {published.epoch} published, policy {published.id[:12]}"
                if older is not None:
                    state += (
                        f": a new life under rules {published.rules} takes over "
                        f"what was published under rules {older}"
                    )
            click.echo(f"{one.tenant}/{one.name}: {state}")
