"""`evenhand audit`: verify, pack, export, backup and restore a ledger."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evenhand.ledger import Ledger
    from evenhand.service import Product, Settings

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


def _settings(config: Path) -> "Settings":
    from evenhand.service import load_settings

    return load_settings(config)


def _product(settings: "Settings", name: str | None) -> "Product":
    from evenhand.errors import InvalidInput

    found = [product for product in settings.products if name in (None, product.name)]
    if len(found) != 1:
        names = ", ".join(product.name for product in settings.products)
        raise InvalidInput(
            f"the product must be named; the settings have {names}.", hint="add --product NAME."
        )
    return found[0]


def _look(settings: "Settings", work: "Callable[[Ledger, bool], None]") -> None:
    from evenhand.service.opening import looking

    with looking(settings, time.time) as (ledger, itself):
        if not itself:
            click.echo("The service is running; this is a snapshot of its ledger.")
        work(ledger, itself)


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
    import json

    from evenhand.ledger import SignedHead, verify

    anchor = None if head is None else SignedHead.from_json(json.loads(head.read_text()))

    def work(ledger: "Ledger", _: bool) -> None:
        found = verify(ledger, anchor, deep)
        for problem in found.problems[:100]:
            click.echo(f"row {problem.seq}: {problem.what}")
        click.echo(
            f"{found.rows:,} rows, head {found.head.seq} {found.head.hash}, {len(found.problems)} problems"
        )
        if not found.ok:
            raise click.exceptions.Exit(1)

    _look(_settings(config), work)


def _period(start: Any, end: Any) -> Any:
    from datetime import UTC

    from evenhand.service.packing import Period

    first = 0.0 if start is None else start.replace(tzinfo=UTC).timestamp()
    return Period(first, 1e12 if end is None else end.replace(tzinfo=UTC).timestamp())


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
    config: Path, product: str | None, start: Any, end: Any, out: Path, reveal: str | None
) -> None:
    """Everything that an auditor needs, in one directory, with a verifier that needs no package."""
    from evenhand.errors import InvalidInput
    from evenhand.service.packing import pack

    settings = _settings(config)

    def work(ledger: "Ledger", itself: bool) -> None:
        if reveal is not None and not itself:
            raise InvalidInput(
                "secrets are revealed by the running service.", hint="POST /v1/windows/NAME/reveal."
            )
        pack(ledger, _product(settings, product), _period(start, end), out, reveal_by=reveal)
        click.echo(
            f"Pack: {out}\nVerify it: cd {out} && python verifier.py ledger.jsonl --secrets secrets.json --head head.json"
        )

    _look(settings, work)


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
    config: Path, product: str | None, start: Any, end: Any, kind: str, out: Path
) -> None:
    """Decisions with propensities for other tools: Open Bandit Pipeline (.npz), VW (dsjson),
    Parquet.
    """
    from evenhand.service.exports import FORMATS

    settings = _settings(config)

    def work(ledger: "Ledger", _: bool) -> None:
        chosen, period = _product(settings, product), _period(start, end)
        rows = (row for row in ledger.history(chosen.tenant, chosen.name) if period.holds(row.at))
        click.echo(f"{FORMATS[kind](rows, chosen, out):,} decisions: {out}")

    _look(settings, work)


@command.command("backup")
@CONFIG
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="A new directory."
)
def backup_command(config: Path, out: Path) -> None:
    """A consistent copy with a signed head. The keyring is not in it: keep it elsewhere."""
    from evenhand.ledger import backup

    def work(ledger: "Ledger", _: bool) -> None:
        click.echo(f"Backup: {backup(ledger, out)}")

    _look(_settings(config), work)


@command.command("restore")
@CONFIG
@BY
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
def restore_command(config: Path, by: str, directory: Path) -> None:
    """Put a backup in the place of a lost ledger.

    It answers what it holds, and draws nothing until confirm-gap.
    """
    from evenhand.ledger import Keyring, restore

    settings = _settings(config)
    restore(
        directory, settings.ledger, keyring=Keyring.load(settings.keyring), clock=time.time, by=by
    )
    click.echo(
        f"Restored: {settings.ledger}\nIt does not draw until you have looked into the gap: evenhand audit confirm-gap"
    )


@command.command("confirm-gap")
@CONFIG
@BY
@click.option("--note", required=True, metavar="TEXT", help="What was checked.")
def confirm_gap_command(config: Path, by: str, note: str) -> None:
    """After a restore: what may be missing has been looked into; the ledger draws again."""
    from evenhand.service.opening import open_ledger

    with open_ledger(_settings(config), time.time) as ledger:
        ledger.confirm_gap(by, note)
    click.echo("Confirmed; the ledger draws again.")
