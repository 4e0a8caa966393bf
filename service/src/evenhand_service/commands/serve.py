"""`evenhand serve`: the decision service, or a demonstration of it with simulated people. Beside it
`evenhand train`, for services that run with --no-train, `evenhand db`, what the owner of the
ledger's database does, and `evenhand keys`, the API keys in the ledger of the settings.
"""

import contextlib
import getpass
import os
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import INPUT_FILE, json_options
from evenhand.cli.show import emit
from evenhand.errors import InvalidInput
from evenhand_service.commands.audit import config_option

if TYPE_CHECKING:
    import uvicorn

    from evenhand_service import LedgerKeys, Settings

by_option = click.option(
    "--by", metavar="NAME", help="Who does it, for the record.  [default: you]"
)
days_option = click.option(
    "--days",
    metavar="D",
    type=float,
    default=90.0,
    show_default=True,
    help="Days after which the key ends.",
)


@click.command("serve")
@click.option("--config", metavar="FILE", type=INPUT_FILE, help="The settings (TOML).")
@click.option(
    "--demo",
    is_flag=True,
    help="Simulated people apply, wait and repay; one second is one day.",
)
@click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("evenhand-service-demo"),
    help="Where --demo keeps its settings, keyring and ledger; it goes on from there.",
)
@click.option("--host", help="The address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port to listen on.  [default: 8377]"
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    default=None,
    help="Listen beyond this machine: a proxy in front ends TLS.",
)
@click.option(
    "--no-train", is_flag=True, help="Decide only; another process runs 'evenhand train'."
)
@click.option("--check", is_flag=True, help="Check the settings, the files and the address; stop.")
@click.option("--seconds", metavar="S", type=float, help="Stop after so many seconds.")
def command(
    config: Path | None,
    demo: bool,
    folder: Path,
    host: str | None,
    port: int | None,
    behind_proxy: bool | None,
    no_train: bool,
    check: bool,
    seconds: float | None,
) -> None:
    """Answer "may I accept this person?" over HTTP, learn, certify, and show a dashboard.

    One process does it all. SQLite is the default and belongs to one process; several replicas need
    PostgreSQL (a URL in the settings). service/docs/first-service.md leads through a first one.
    Ctrl-C ends it: who is being answered is answered.

    \b
    Example: see it alive, with simulated people
      evenhand serve --demo --seconds 3

    \b
    Example: for real
      evenhand serve --config service.toml
    """
    from dataclasses import replace

    from evenhand_service import load_settings, server
    from evenhand_service.demo import demo_settings

    if demo == (config is not None):
        raise click.UsageError("give either --config FILE or --demo.")
    changed: dict[str, Any] = {}
    if host is not None:
        changed["host"] = host
    if port is not None:
        changed["port"] = port
    if behind_proxy is not None:
        changed["behind_proxy"] = behind_proxy
    settings = demo_settings(folder) if config is None else load_settings(config)
    settings = replace(settings, **changed)
    if check:
        for line in server.check(settings):
            click.echo(line)
        click.echo("The service can start.")
        return
    server.require_safe_address(settings)
    server.require_places(settings)
    with contextlib.closing(server.bound(settings)) as listening:  # a busy port burns no key
        if config is None:
            _serve_demo(settings, folder, listening, seconds)
        else:
            _serve(settings, listening, train=not no_train, seconds=seconds)


def _serve(
    settings: "Settings", listening: socket.socket, *, train: bool, seconds: float | None
) -> None:
    from evenhand_service import LedgerKeys, create_app, server
    from evenhand_service.keys import KEY_DAYS
    from evenhand_service.ledger import SystemClock
    from evenhand_service.opening import open_ledger
    from evenhand_service.product_changes import require_unchanged
    from evenhand_service.traces import tracing

    with tracing(settings.traces), open_ledger(settings, SystemClock()) as ledger:
        for product in settings.products:
            require_unchanged(ledger.policies(product.name), product, ledger.keyring.public_key)
        keys = LedgerKeys(ledger)
        written = server.first_key(keys, settings)
        running = server.make_server(create_app(ledger, settings, keys, train=train), settings)
        _say_addresses(settings)
        if settings.ledger_file is not None:
            click.echo(
                "Ledger:    SQLite, one process. "
                "For several replicas give the URL of a PostgreSQL database."
            )
        if written is not None:
            click.echo(
                f"First key, with every scope, for {KEY_DAYS:g} days, in the file {written}\n"
                "           Make narrower ones with it, then revoke it and remove the file."
            )
        if not settings.witnesses:
            server.warn_without_witness(settings)
        click.echo("Stop with Ctrl-C.")
        _stop_after(seconds, running)
        server.run(running, listening)


def _serve_demo(
    settings: "Settings", folder: Path, listening: socket.socket, seconds: float | None
) -> None:
    from evenhand_service import LedgerKeys, create_app, server
    from evenhand_service.demo import DemoPopulation, FastClock, say_status, status_line
    from evenhand_service.opening import open_ledger
    from evenhand_service.product_changes import require_unchanged

    (product,) = settings.products
    clock = FastClock()
    with open_ledger(settings, clock) as ledger:
        clock.go_on_from(ledger.head().at)
        require_unchanged(ledger.policies(product.name), product, ledger.keyring.public_key)
        keys = LedgerKeys(ledger)
        app = create_app(ledger, settings, keys)
        running = server.make_server(app, settings)
        _say_addresses(settings)
        click.echo(f"Folder:    {folder}  (kept; remove it to begin again)")
        click.echo("Stop with Ctrl-C. Until then, one line a minute.")
        people = DemoPopulation(
            f"http://{settings.host}:{settings.port}",
            keys,
            clock,
            product,
            say=_say_now,
            applied=ledger.counts(product.name).decisions,
        )
        before = people.applied
        people.start()
        say_status(lambda: status_line(app.service, product), _say_now, people.stop)
        _stop_after(seconds, running)
        try:
            server.run(running, listening)
        finally:
            people.stop.set()
            # The ledger counts those who were decided while the server stopped, too.
            applied = ledger.counts(product.name).decisions - before
            click.echo(f"{applied:,} simulated people applied. Look at the ledger:")
    file = folder / "service.toml"
    click.echo(f"  evenhand audit verify --config {file} --deep")
    click.echo(f"  evenhand audit pack --config {file} --out {folder / 'pack'}")


def _say_addresses(settings: "Settings") -> None:
    url = f"http://{settings.host}:{settings.port}"
    click.echo(f"Dashboard: {url}/dashboard\nAPI:       {url}/openapi.json")


def _say_now(line: str) -> None:
    click.echo(f"{time.strftime('%H:%M')}  {line}")


def _stop_after(seconds: float | None, running: "uvicorn.Server") -> None:
    if seconds is not None:
        timer = threading.Timer(seconds, lambda: setattr(running, "should_exit", True))
        timer.daemon = True
        timer.start()


@click.command("train")
@config_option
@click.option("--product", metavar="NAME", help="Only this product.  [default: all]")
@click.option("--now", is_flag=True, help="Close the epoch even if it is not full.")
def train(settings: "Settings", product: str | None, now: bool) -> None:
    """Close the epoch of each product that is due, train, certify and publish.

    Two trainers never publish the same epoch: a lease with a fencing token and a compare-and-swap
    on the lineage see to that. On SQLite the service itself trains, because the ledger belongs to
    one process; with PostgreSQL run this from cron or beside replicas.

    \b
    Example
      evenhand train --config service.toml --now
    """
    from evenhand_service import Trainer
    from evenhand_service.ledger import SystemClock
    from evenhand_service.opening import open_ledger
    from evenhand_service.traces import tracing

    chosen = [one for one in settings.products if product in (None, one.name)]
    if not chosen:
        raise InvalidInput(f"the settings have no product {product!r}.")
    with tracing(settings.traces), open_ledger(settings, SystemClock()) as ledger:
        for one in chosen:
            trainer = Trainer(ledger, one, f"{socket.gethostname()}:{os.getpid()}")
            trainer.begin()
            published = trainer.close() if now else trainer.close_if_due()
            trainer.release()
            state = "not due"
            if published is not None:
                state = f"epoch {published.epoch} published, policy {published.id[:12]}"
            click.echo(f"{one.name}: {state}")


@click.group("db")
def db() -> None:
    """Which database holds the ledger, and who may do what in it.

    \b
    Example
      evenhand db show --config service.toml
    """


@db.command("show")
@config_option
def show_command(settings: "Settings") -> None:
    """Where the ledger is, and whether the role of the settings could change its chain."""
    from evenhand_service.ledger.postgres import could_change

    if settings.ledger_file is not None:
        click.echo(f"SQLite: {settings.ledger_file}; whoever can write the file can change it.")
        return
    role, changeable = could_change(settings.ledger)
    ability = "can append, not change"
    if changeable:
        ability = "could change the chain: evenhand db grant"
    click.echo(f"PostgreSQL: the role {role} {ability}.")


@db.command("grant")
@config_option
@click.argument("role")
def grant_command(settings: "Settings", role: str) -> None:
    """Let ROLE append to the ledger, and nothing else; the settings name the owner's URL."""
    from evenhand_service.ledger.postgres import grant

    if settings.ledger_file is not None:
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
    from evenhand_service import LedgerKeys
    from evenhand_service.ledger import LedgerLocked
    from evenhand_service.opening import open_ledger

    try:
        ledger = open_ledger(settings, time.time)
    except LedgerLocked as locked:
        raise LedgerLocked(
            locked.sentence,
            hint="ask the running service: POST /v1/keys, GET /v1/keys, DELETE /v1/keys/ID; "
            "or stop it.",
        ) from locked
    with ledger:
        yield LedgerKeys(ledger)


def _by(by: str | None) -> str:
    return by or f"{getpass.getuser()} (command line)"


@keys.command("create")
@config_option
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["decide", "observe", "override", "audit", "admin"]),
    multiple=True,
    required=True,
    help="What the key may do; repeat it for several.",
)
@click.option(
    "--name", metavar="NAME", required=True, help="What it is for; it signs what it does."
)
@days_option
@by_option
def create(
    settings: "Settings", scopes: tuple[str, ...], name: str, days: float, by: str | None
) -> None:
    """Make a key, and print it; it is not shown again."""
    with _opened(settings) as opened:
        click.echo(opened.add(scopes, name, _by(by), days))


@keys.command("rotate")
@config_option
@click.argument("key_id", metavar="ID")
@days_option
@click.option(
    "--overlap-days",
    metavar="D",
    type=float,
    default=7.0,
    show_default=True,
    help="Days for which the old key goes on.",
)
@by_option
def rotate(
    settings: "Settings", key_id: str, days: float, overlap_days: float, by: str | None
) -> None:
    """Make the successor of the key ID, and print it; the old one goes on for a while."""
    from evenhand_service.ledger import NotFound

    with _opened(settings) as opened:
        token = opened.rotate(key_id, _by(by), days, overlap_days)
    if token is None:
        raise NotFound(f"there is no valid key {key_id!r}.", hint="evenhand keys list.")
    click.echo(token)


@keys.command("list")
@config_option
@json_options
def list_keys(settings: "Settings", document: str | Path | None) -> None:
    """List the keys, revoked ones too, without what opens."""
    with _opened(settings) as opened:
        found = opened.all()
        now = opened.now()
    rows = [
        {
            "id": key.id,
            "state": "revoked" if key.revoked else "ended" if key.ends <= now else "valid",
            "ends": datetime.fromtimestamp(key.ends, UTC).date().isoformat(),
            "scopes": sorted(key.scopes),
            "name": key.name,
        }
        for key in found
    ]
    if emit(document, {"keys": rows}):
        return
    for row in rows:
        scopes = ",".join(row["scopes"])
        click.echo(f"{row['id']}  {row['state']:7}  {row['ends']}  {scopes}  {row['name']}")


@keys.command("revoke")
@config_option
@click.argument("key_id", metavar="ID")
@by_option
def revoke(settings: "Settings", key_id: str, by: str | None) -> None:
    """Revoke the key ID: when this returns, it opens no replica."""
    from evenhand_service.ledger import NotFound

    with _opened(settings) as opened:
        if not opened.revoke(key_id, _by(by)):
            raise NotFound(f"there is no key {key_id!r}.", hint="evenhand keys list.")
    click.echo(f"{key_id} is revoked.")
