"""`evenhand keys`: the API keys of the service, in the ledger of the settings."""

import contextlib
import getpass
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.audit import CONFIG, OLD_FILE
from evenhand.cli.options import JSON_OPTION, option

if TYPE_CHECKING:
    from evenhand.service import LedgerKeys, Settings

TENANT = option("--tenant NAME", "Whose key.  [default: the only tenant]")
BY = option("--by NAME", "Who does it, for the record.  [default: you]")


@click.group("keys")
def command() -> None:
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
    from evenhand.errors import InvalidInput

    known = list(dict.fromkeys(product.tenant for product in settings.products))
    if tenant is None and len(known) == 1:
        return known[0]
    if tenant not in known:
        raise InvalidInput(
            f"tenant is {tenant!r}; it must be one of the settings' tenants.",
            hint=f"they are {', '.join(known)}: give --tenant.",
        )
    return tenant


@command.command(
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
    with _opened(settings) as keys:
        click.echo(keys.add(_tenant(settings, tenant), scopes, name, _by(by)))


@command.command(
    "list",
    params=[
        CONFIG,
        option("--tenant NAME", "Whose keys.  [default: those of all tenants]"),
        JSON_OPTION,
    ],
)
def list_keys(settings: "Settings", tenant: str | None, document: str | None) -> None:
    """List the keys, revoked ones too, without what opens."""
    from evenhand.cli.show import emit

    everybody = dict.fromkeys(product.tenant for product in settings.products)
    tenants = everybody if tenant is None else [_tenant(settings, tenant)]
    with _opened(settings) as keys:
        found = [(one, key) for one in tenants for key in keys.all(one)]
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


@command.command("revoke", params=[CONFIG, TENANT, click.Argument(["key_id"], metavar="ID"), BY])
def revoke(settings: "Settings", tenant: str | None, key_id: str, by: str | None) -> None:
    """Revoke the key ID: when this returns, it opens no replica."""
    from evenhand.ledger import NotFound

    with _opened(settings) as keys:
        if not keys.revoke(_tenant(settings, tenant), key_id, _by(by)):
            raise NotFound(f"this tenant has no key {key_id!r}.", hint="evenhand keys list.")
    click.echo(f"{key_id} is revoked.")


@command.command("first", params=[CONFIG, BY])
def first(settings: "Settings", by: str | None) -> None:
    """Make one key with every scope for each tenant that has none, and print it.

    `evenhand serve` does this at its first start. If that key was lost, use `create`.
    """
    tenants = dict.fromkeys(product.tenant for product in settings.products)
    with _opened(settings) as keys:
        made = keys.first(tenants, _by(by))
    for tenant in tenants:
        told = made.get(tenant, "has keys already; evenhand keys create makes more")
        click.echo(f"{tenant}: {told}")


@command.command(
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
    with _opened(settings) as keys:
        number = keys.take_over(KeyStore(source), _by(by))
    click.echo(f"{number} keys of {source} are new in the ledger; delete the file.")
