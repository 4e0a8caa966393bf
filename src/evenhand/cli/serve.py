"""`evenhand serve`: the decision service, or a demonstration of it with simulated people."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

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
    "--plain-http", is_flag=True, help="Allow HTTP beyond this machine: a proxy in front ends TLS."
)
@click.option(
    "--no-train", is_flag=True, help="Decide only; another process runs 'evenhand train'."
)
@click.option("--seconds", type=float, metavar="S", help="Stop after so many seconds.")
def command(
    config: Path | None,
    demo: bool,
    host: str | None,
    port: int | None,
    plain_http: bool,
    no_train: bool,
    seconds: float | None,
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
    if demo == (config is not None):
        raise click.UsageError("give either --config FILE or --demo.")
    chosen = {"host": host, "port": port, "plain_http": plain_http or None}
    with _settings(
        config, {name: value for name, value in chosen.items() if value is not None}
    ) as settings:
        _serve(settings, demo=demo, train=not no_train, seconds=seconds)


@contextlib.contextmanager
def _settings(config: Path | None, chosen: dict[str, object]) -> "Iterator[Settings]":
    """From the file, or in a directory that is thrown away after the demo."""
    from dataclasses import replace

    from evenhand.service import load_settings

    if config is not None:
        yield replace(load_settings(config), **chosen)  # type: ignore[arg-type]  # click has checked the types
        return
    from evenhand.service.demo import demo_settings

    with tempfile.TemporaryDirectory(prefix="evenhand-demo-") as directory:
        host, port = str(chosen.get("host", "127.0.0.1")), int(str(chosen.get("port", 8377)))
        yield demo_settings(Path(directory), host, port)


def _serve(settings: "Settings", *, demo: bool, train: bool, seconds: float | None) -> None:
    from evenhand.service import create_app
    from evenhand.service.demo import DemoPopulation, FastClock
    from evenhand.service.opening import open_keys, open_ledger
    from evenhand.service.running import require_safe_address, run, server, stop_after

    require_safe_address(settings)
    fast = FastClock()
    keys, fresh = open_keys(settings)
    with open_ledger(settings, fast if demo else time.time) as ledger:
        running = server(create_app(ledger, settings, keys, train=train), settings)
        scheme = "http" if settings.tls_certificate is None else "https"
        url = f"{scheme}://{settings.host}:{settings.port}"
        _tell(settings, url, {} if demo else fresh)
        if seconds is not None:
            stop_after(running, seconds)
        people = DemoPopulation(url, next(iter(fresh.values())), fast) if demo else None
        if people is not None:
            people.start()
        try:
            run(running)
        finally:
            if people is not None:
                people.stop.set()
                click.echo(f"{people.applied:,} simulated people applied.")


def _tell(settings: "Settings", url: str, fresh: dict[str, str]) -> None:
    click.echo(f"Dashboard: {url}/dashboard\nAPI:       {url}/openapi.json")
    if "://" not in settings.ledger:
        click.echo(
            "Ledger:    SQLite, one process. For several replicas give the URL of a PostgreSQL database."
        )
    for tenant, token in fresh.items():
        click.echo(f"First key of {tenant}, with every scope; it is not shown again:\n  {token}")
    click.echo("Stop with Ctrl-C.")
