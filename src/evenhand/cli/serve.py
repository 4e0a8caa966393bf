"""`evenhand serve`: the decision service, or a demonstration of it with simulated people. Beside it
`evenhand train`, for services that run with --no-train, `evenhand db`, what the owner of the
ledger's database does, and `evenhand keys`, the API keys in the ledger of the settings.
"""

import contextlib
import getpass
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.audit import CONFIG, OLD_FILE
from evenhand.cli.options import JSON_OPTION, flag, option
from evenhand.cli.show import emit
from evenhand.errors import InvalidInput

if TYPE_CHECKING:
    from evenhand.service import LedgerKeys, Settings

TENANT = option("--tenant NAME", "Whose key.  [default: the only tenant]")
BY = option("--by NAME", "Who does it, for the record.  [default: you]")


@click.command(
    "serve",
    params=[
        option("--config FILE", "The settings (TOML).", OLD_FILE),
        flag("--demo", "Simulated people apply, wait and repay; one second is one day."),
        option("--host", "The address to listen on.  [default: 127.0.0.1]"),
        option("--port", "The port to listen on.  [default: 8377]", click.IntRange(0, 65535)),
        flag(
            "--plain-http",
            "Allow HTTP beyond this machine: a proxy in front ends TLS.",
            default=None,
        ),
        flag("--no-train", "Decide only; another process runs 'evenhand train'."),
        flag("--check", "Check the settings, the files and the address; stop."),
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
        flag("--now", "Close the epoch even if it is not full."),
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
    from evenhand.ledger.postgres import grant

    if "://" not in settings.ledger:
        raise InvalidInput(
            "a SQLite ledger has no roles.", hint="protect its directory; or use PostgreSQL."
        )
    for statement in grant(settings.ledger, role):
        click.echo(f"{statement};")
    click.echo(f"Role {role} can append and read. Let the service use it in its URL.")


# evenhand keys


@click.group("keys")
def keys() -> None:
    """Create, list and revoke API keys, in the database of the settings.

    Every creation and revocation is a row of the chain, without the key itself. It holds on every
    replica at once. A SQLite ledger belongs to one process: while the service runs on one, use POST
    /v1/keys and DELETE /v1/keys/ID, or stop it.

    \b
    Example
      evenhand keys create --config service.toml --scope decide --name "web shop"
    """


@contextlib.contextmanager
def _opened(settings: "Settings") -> Iterator["LedgerKeys"]:
    from evenhand.ledger import LedgerLocked
    from evenhand.service import LedgerKeys
    from evenhand.service.server import open_ledger

    try:
        ledger = open_ledger(settings, time.time)
    except LedgerLocked as locked:
        raise LedgerLocked(
            str(locked).split(" Hint: ")[0],
            hint="ask the running service: POST /v1/keys, GET /v1/keys, DELETE /v1/keys/ID; "
            "or stop it.",
        ) from locked
    with ledger:
        yield LedgerKeys(ledger)


def _by(by: str | None) -> str:
    return by or f"{getpass.getuser()} (command line)"


def _tenant(settings: "Settings", tenant: str | None) -> str:
    known = list(dict.fromkeys(product.tenant for product in settings.products))
    if tenant is None and len(known) == 1:
        return known[0]
    if tenant not in known:
        raise InvalidInput(
            f"tenant is {tenant!r}; it must be one of the settings' tenants.",
            hint=f"they are {', '.join(known)}: give --tenant.",
        )
    return tenant


@keys.command(
    "create",
    params=[
        CONFIG,
        TENANT,
        option(
            "--scope scopes",
            "What the key may do; repeat it for several.",
            click.Choice(["decide", "observe", "audit", "admin"]),
            multiple=True,
            required=True,
        ),
        option("--name NAME", "What it is for; it signs what it does.", required=True),
        BY,
    ],
)
def create(
    settings: "Settings", tenant: str | None, scopes: tuple[str, ...], name: str, by: str | None
) -> None:
    """Make a key, and print it; it is not shown again."""
    with _opened(settings) as opened:
        click.echo(opened.add(_tenant(settings, tenant), scopes, name, _by(by)))


@keys.command(
    "list",
    params=[
        CONFIG,
        option("--tenant NAME", "Whose keys.  [default: those of all tenants]"),
        JSON_OPTION,
    ],
)
def list_keys(settings: "Settings", tenant: str | None, document: str | None) -> None:
    """List the keys, revoked ones too, without what opens."""
    everybody = dict.fromkeys(product.tenant for product in settings.products)
    tenants = everybody if tenant is None else [_tenant(settings, tenant)]
    with _opened(settings) as opened:
        found = [(one, key) for one in tenants for key in opened.all(one)]
    rows = [
        {
            "tenant": one,
            "id": key.id,
            "state": "revoked" if key.revoked else "valid",
            "scopes": sorted(key.scopes),
            "name": key.name,
        }
        for one, key in found
    ]
    if emit(document, {"keys": rows}):
        return
    for row in rows:
        scopes = ",".join(row["scopes"])
        click.echo(f"{row['tenant']}  {row['id']}  {row['state']:7}  {scopes}  {row['name']}")


@keys.command("revoke", params=[CONFIG, TENANT, click.Argument(["key_id"], metavar="ID"), BY])
def revoke(settings: "Settings", tenant: str | None, key_id: str, by: str | None) -> None:
    """Revoke the key ID: when this returns, it opens no replica."""
    from evenhand.ledger import NotFound

    with _opened(settings) as opened:
        if not opened.revoke(_tenant(settings, tenant), key_id, _by(by)):
            raise NotFound(f"this tenant has no key {key_id!r}.", hint="evenhand keys list.")
    click.echo(f"{key_id} is revoked.")


@keys.command("first", params=[CONFIG, BY])
def first(settings: "Settings", by: str | None) -> None:
    """Make one key with every scope for each tenant that has none, and print it.

    `evenhand serve` does this at its first start. If that key was lost, use `create`.
    """
    tenants = dict.fromkeys(product.tenant for product in settings.products)
    with _opened(settings) as opened:
        made = opened.first(tenants, _by(by))
    for tenant in tenants:
        told = made.get(tenant, "has keys already; evenhand keys create makes more")
        click.echo(f"{tenant}: {told}")


@keys.command(
    "import",
    params=[
        CONFIG,
        option("--from file FILE", "The file of keys.  [default: that of the settings]", OLD_FILE),
        BY,
    ],
)
def take_over(settings: "Settings", file: Path | None, by: str | None) -> None:
    """Take over the keys of keys.json, where they were kept before.

    Revoked keys stay revoked, and a key that is in the ledger already stays as it is there. The
    file is not read again: delete it.
    """
    from evenhand.service import KeyStore

    source = file or Path(settings.keys)
    if not source.exists():
        raise click.UsageError(f"{source} does not exist; give --from FILE.")
    with _opened(settings) as opened:
        number = opened.take_over(KeyStore(source), _by(by))
    click.echo(f"{number} keys of {source} are new in the ledger; delete the file.")
