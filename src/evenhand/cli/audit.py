"""`evenhand audit`: verify, pack, export, backup and restore a ledger."""

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evenhand.ledger import Ledger
    from evenhand.service import Product, Settings
    from evenhand.service.audit_pack import Period

CONFIG = click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The settings of the service (TOML).",
)
PRODUCT = click.option("--product", metavar="NAME", help="The product.  [default: the only one]")
FROM = click.option(
    "--from", "start", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="First day, UTC."
)
TO = click.option(
    "--to", "end", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="Day after the last, UTC."
)
BY = click.option(
    "--by", required=True, metavar="NAME", help="Who does it; recorded in the ledger."
)


@click.group("audit")
def command() -> None:
    """Verify a ledger, pack it for an auditor, export it, back it up and restore it.

    While the service runs, verify, pack, export and backup work on a snapshot.

    \b
    Example
      evenhand audit verify --config service.toml
    """


@contextlib.contextmanager
def _ledger(settings: "Settings") -> "Iterator[tuple[Ledger, bool]]":
    """(ledger, whether it is the ledger itself, and no snapshot of it)."""
    from evenhand.service.server import ledger_or_snapshot

    with ledger_or_snapshot(settings, time.time) as (ledger, itself):
        if not itself:
            click.echo("The service is running; this is a snapshot of its ledger.")
        yield ledger, itself


def _product(settings: "Settings", name: str | None) -> "Product":
    from evenhand.errors import InvalidInput

    chosen = [product for product in settings.products if name in (None, product.name)]
    if len(chosen) != 1:
        names = ", ".join(product.name for product in settings.products)
        raise InvalidInput(
            f"the product must be named; the settings have {names}.", hint="add --product NAME."
        )
    return chosen[0]


def _period(start: datetime | None, end: datetime | None) -> "Period":
    from evenhand.service.audit_pack import Period

    first = 0.0 if start is None else start.replace(tzinfo=UTC).timestamp()
    return Period(first, 1e12 if end is None else end.replace(tzinfo=UTC).timestamp())


@command.command("verify")
@CONFIG
@click.option(
    "--head",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="A head that was published before.",
)
@click.option("--deep", is_flag=True, help="Also open every sealed field.")
def verify_command(config: Path, head: Path | None, deep: bool) -> None:
    """Find any edit, deletion, reordering or truncation of the ledger."""
    from evenhand.ledger import SignedHead, verify
    from evenhand.service import load_settings

    published = None if head is None else SignedHead.from_json(json.loads(head.read_text()))
    with _ledger(load_settings(config)) as (ledger, _):
        verification = verify(ledger, published, deep)
    for problem in verification.problems[:100]:
        click.echo(f"row {problem.seq}: {problem.what}")
    click.echo(
        f"{verification.rows:,} rows, head {verification.head.seq} {verification.head.hash}, "
        f"{len(verification.problems)} problems"
    )
    if not verification.ok:
        raise click.exceptions.Exit(1)


@command.command("pack")
@CONFIG
@PRODUCT
@FROM
@TO
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="A new directory."
)
@click.option(
    "--reveal", metavar="NAME", help="Reveal the secrets of ended windows, in this person's name."
)
def pack_command(
    config: Path,
    product: str | None,
    start: datetime | None,
    end: datetime | None,
    out: Path,
    reveal: str | None,
) -> None:
    """Everything that an auditor needs, in one directory, with a verifier that needs no package."""
    from evenhand.errors import InvalidInput
    from evenhand.service import load_settings
    from evenhand.service.audit_pack import pack

    settings = load_settings(config)
    with _ledger(settings) as (ledger, itself):
        if reveal is not None and not itself:
            raise InvalidInput(
                "secrets are revealed by the running service.", hint="POST /v1/windows/NAME/reveal."
            )
        pack(ledger, _product(settings, product), _period(start, end), out, reveal_by=reveal)
    click.echo(
        f"Pack: {out}\nVerify it: cd {out} && "
        "python verifier.py ledger.jsonl --secrets secrets.json --head head.json"
    )


@command.command("export")
@CONFIG
@PRODUCT
@FROM
@TO
@click.option(
    "--format",
    "kind",
    type=click.Choice(("obp", "dsjson", "parquet")),
    required=True,
    help="Whose format.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file to write.",
)
def export_command(
    config: Path,
    product: str | None,
    start: datetime | None,
    end: datetime | None,
    kind: str,
    out: Path,
) -> None:
    """Decisions with propensities for other tools: Open Bandit Pipeline (.npz), VW (dsjson),
    Parquet.
    """
    from evenhand.service import load_settings
    from evenhand.service.audit_pack import export_decisions

    settings = load_settings(config)
    chosen, period = _product(settings, product), _period(start, end)
    with _ledger(settings) as (ledger, _):
        rows = (row for row in ledger.history(chosen.tenant, chosen.name) if period.holds(row.at))
        click.echo(f"{export_decisions(rows, chosen, out, kind):,} decisions: {out}")


@command.command("backup")
@CONFIG
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="A new directory."
)
def backup_command(config: Path, out: Path) -> None:
    """A consistent copy with a signed head. The keyring is not in it: keep it elsewhere."""
    from evenhand.ledger import backup
    from evenhand.service import load_settings

    with _ledger(load_settings(config)) as (ledger, _):
        click.echo(f"Backup: {backup(ledger, out)}")


@command.command("restore")
@CONFIG
@BY
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
def restore_command(config: Path, by: str, directory: Path) -> None:
    """Put a backup in the place of a lost ledger.

    It answers what it holds, and draws nothing until confirm-gap.
    """
    from evenhand.ledger import Keyring, restore
    from evenhand.service import load_settings

    settings = load_settings(config)
    restore(
        directory, settings.ledger, keyring=Keyring.load(settings.keyring), clock=time.time, by=by
    )
    click.echo(
        f"Restored: {settings.ledger}\n"
        "It does not draw until you have looked into the gap: evenhand audit confirm-gap"
    )


@command.command("confirm-gap")
@CONFIG
@BY
@click.option("--note", required=True, metavar="TEXT", help="What was checked.")
def confirm_gap_command(config: Path, by: str, note: str) -> None:
    """After a restore: what may be missing has been looked into; the ledger draws again."""
    from evenhand.service import load_settings
    from evenhand.service.server import open_ledger

    with open_ledger(load_settings(config), time.time) as ledger:
        ledger.confirm_gap(by, note)
    click.echo("Confirmed; the ledger draws again.")
