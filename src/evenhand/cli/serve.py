"""`evenhand serve`: the decision service, or a demonstration of it with simulated people. Beside it
`evenhand train`, for services that run with --no-train, and `evenhand db`, what the owner of the
ledger's database does.
"""

import contextlib
import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.audit import CONFIG, OLD_FILE
from evenhand.cli.options import option

if TYPE_CHECKING:
    from evenhand.service import Settings


@click.command(
    "serve",
    params=[
        option("--config FILE", "The settings (TOML).", OLD_FILE),
        option(
            "--demo", "Simulated people apply, wait and repay; one second is one day.", is_flag=True
        ),
        option("--host", "The address to listen on.  [default: 127.0.0.1]"),
        option("--port", "The port to listen on.  [default: 8377]", click.IntRange(0, 65535)),
        option(
            "--plain-http",
            "Allow HTTP beyond this machine: a proxy in front ends TLS.",
            is_flag=True,
            default=None,
        ),
        option("--no-train", "Decide only; another process runs 'evenhand train'.", is_flag=True),
        option("--check", "Check the settings, the files and the address; stop.", is_flag=True),
        option("--seconds S", "Stop after so many seconds.", float),
    ],
)
def command(
    config: Path | None,
    demo: bool,
    no_train: bool,
    check: bool,
    seconds: float | None,
    **changed: Any,
) -> None:
    """Answer "may I accept this person?" over HTTP, learn, certify, and show a dashboard.

    One process does it all. SQLite is the default and belongs to one process; several replicas need
    PostgreSQL (a URL in the settings). Everything is described in docs/operating.md.

    \b
    Example: see it alive, with simulated people
      evenhand serve --demo --seconds 3

    \b
    Example: for real
      evenhand serve --config service.toml
    """
    from dataclasses import replace

    from evenhand.service import load_settings, server
    from evenhand.service.demo import demo_settings

    if demo == (config is not None):
        raise click.UsageError("give either --config FILE or --demo.")
    changed = {name: value for name, value in changed.items() if value is not None}
    with contextlib.ExitStack() as stack:
        if config is not None:
            settings = load_settings(config)
        else:  # in a directory that is thrown away afterwards
            place = tempfile.TemporaryDirectory(prefix="evenhand-demo-")
            settings = demo_settings(Path(stack.enter_context(place)))
            changed.pop("plain_http", None)
        if check:
            for line in server.check(replace(settings, **changed)):
                click.echo(line)
            click.echo("The service can start.")
            return
        _serve(replace(settings, **changed), demo=demo, train=not no_train, seconds=seconds)


def _serve(settings: "Settings", *, demo: bool, train: bool, seconds: float | None) -> None:
    from evenhand.ledger import SystemClock
    from evenhand.service import create_app, server
    from evenhand.service.demo import DemoPopulation, FastClock

    server.require_safe_address(settings)
    server.require_places(settings)
    fast = FastClock()
    scheme = "http" if settings.tls_certificate is None else "https"
    url = f"{scheme}://{settings.host}:{settings.port}"
    with server.open_ledger(settings, fast if demo else SystemClock()) as ledger:
        keys, tokens = server.open_keys(ledger, settings)
        running = server.make_server(create_app(ledger, settings, keys, train=train), settings)
        click.echo(f"Dashboard: {url}/dashboard\nAPI:       {url}/openapi.json")
        if "://" not in settings.ledger:
            click.echo(
                "Ledger:    SQLite, one process. "
                "For several replicas give the URL of a PostgreSQL database."
            )
        for tenant, token in () if demo else tokens.items():
            click.echo(
                f"First key of {tenant}, with every scope; it is not shown again:\n  {token}"
            )
        click.echo("Stop with Ctrl-C.")
        if seconds is not None:
            timer = threading.Timer(seconds, lambda: setattr(running, "should_exit", True))
            timer.daemon = True
            timer.start()
        people = DemoPopulation(url, next(iter(tokens.values())), fast) if demo else None
        if people is not None:
            people.start()
        try:
            server.run(running)
        finally:
            if people is not None:
                people.stop.set()
                click.echo(f"{people.applied:,} simulated people applied.")


@click.command(
    "train",
    params=[
        CONFIG,
        option("--product NAME", "Only this product.  [default: all]"),
        option("--now", "Close the epoch even if it is not full.", is_flag=True),
    ],
)
def train(settings: "Settings", product: str | None, now: bool) -> None:
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


@click.group("db")
def db() -> None:
    """Which database holds the ledger, and who may do what in it.

    \b
    Example
      evenhand db show --config service.toml
    """


@db.command("show", params=[CONFIG])
def show_command(settings: "Settings") -> None:
    """Where the ledger is, and whether the role of the settings could change its chain."""
    from evenhand.ledger.postgres import could_change

    if "://" not in settings.ledger:
        click.echo(f"SQLite: {settings.ledger}; whoever can write the file can change it.")
        return
    role, changeable = could_change(settings.ledger)
    law = "could change the chain: evenhand db grant" if changeable else "can append, not change"
    click.echo(f"PostgreSQL: the role {role} {law}.")


@db.command("grant", params=[CONFIG, click.Argument(["role"])])
def grant_command(settings: "Settings", role: str) -> None:
    """Let ROLE append to the ledger, and nothing else; the settings name the owner's URL."""
    from evenhand.errors import InvalidInput
    from evenhand.ledger.postgres import grant

    if "://" not in settings.ledger:
        raise InvalidInput(
            "a SQLite ledger has no roles.", hint="protect its directory; or use PostgreSQL."
        )
    for statement in grant(settings.ledger, role):
        click.echo(f"{statement};")
    click.echo(f"Role {role} can append and read. Let the service use it in its URL.")
