"""`evenhand serve`: the decision service, or a demonstration of it with simulated people."""

import contextlib
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evenhand.service import Settings


@click.command("serve")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The settings (TOML).",
)
@click.option(
    "--demo", is_flag=True, help="Simulated people apply, wait and repay; one second is one day."
)
@click.option("--host", help="The address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port to listen on.  [default: 8377]"
)
@click.option(
    "--plain-http",
    is_flag=True,
    default=None,
    help="Allow HTTP beyond this machine: a proxy in front ends TLS.",
)
@click.option(
    "--no-train", is_flag=True, help="Decide only; another process runs 'evenhand train'."
)
@click.option("--check", is_flag=True, help="Check the settings, the files and the address; stop.")
@click.option("--seconds", type=float, metavar="S", help="Stop after so many seconds.")
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
