"""`evenhand audit`: verify, pack, export, backup and restore a ledger."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import JSON_OPTION, flag, option
from evenhand.cli.show import emit
from evenhand.errors import InvalidInput

if TYPE_CHECKING:
    from evenhand.ledger import Ledger
    from evenhand.service import Product, Settings
    from evenhand.service.audit_pack import Period


def _settings(_: click.Context, __: click.Parameter, path: Path) -> "Settings":
    from evenhand.service import load_settings

    return load_settings(path)


OLD_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
CONFIG = option(
    "--config settings FILE",
    "The settings of the service (TOML).",
    OLD_FILE,
    required=True,
    callback=_settings,
)
OUT = option("--out DIR", "A new directory.", click.Path(path_type=Path), required=True)
WHICH = (
    option("--tenant NAME", "Whose product.  [default: the only one's]"),
    option("--product NAME", "The product.  [default: the only one]"),
    option("--from start DAY", "First day, UTC.", click.DateTime(["%Y-%m-%d"])),
    option("--to end DAY", "Day after the last, UTC.", click.DateTime(["%Y-%m-%d"])),
)
"""The product and the days that an auditor asks about; `_chosen` reads them."""
CHECKED = option("--note TEXT", "What was checked.", required=True)
WHY = option("--note TEXT", "Why.", default="")
BY = option("--by NAME", "Who does it; recorded in the ledger.", required=True)


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
    from evenhand.ledger import SystemClock
    from evenhand.service.server import is_read_only, ledger_or_snapshot

    with ledger_or_snapshot(settings, SystemClock()) as (ledger, itself):
        if not itself:
            told = "The service is running; this is a snapshot of its ledger."
            if is_read_only(settings):
                told = "The ledger cannot be written here; this is a copy of it."
            click.echo(told, err=True)
        yield ledger, itself


def _writable(settings: "Settings") -> "Ledger":
    from evenhand.ledger import SystemClock
    from evenhand.service.server import open_ledger

    return open_ledger(settings, SystemClock())


def _chosen(
    settings: "Settings",
    tenant: str | None,
    product: str | None,
    start: datetime | None,
    end: datetime | None,
) -> "tuple[Product, Period]":
    """The product and the days that the options name."""
    from evenhand.service.audit_pack import Period

    chosen = [
        one
        for one in settings.products
        if product in (None, one.name) and tenant in (None, one.tenant)
    ]
    if len(chosen) != 1:
        names = ", ".join(f"{one.tenant}/{one.name}" for one in settings.products)
        asked = f"tenant {tenant!r} and product {product!r} name {len(chosen)} products"
        raise InvalidInput(
            f"{asked}, and exactly one is needed; the settings have {names}.",
            hint="add --tenant NAME and --product NAME.",
        )
    first = 0.0 if start is None else start.replace(tzinfo=UTC).timestamp()
    last = 1e12 if end is None else end.replace(tzinfo=UTC).timestamp()
    return chosen[0], Period(first, last)


@command.command(
    "verify",
    params=[
        CONFIG,
        option(
            "--head FILE",
            "A head that was published before.",
            click.Path(exists=True, path_type=Path),
        ),
        flag("--deep", "Also open every sealed field, and recompute draws and acceptances."),
        option(
            "--witness witnesses PLACE",
            "A witness's file, directory or URL; may be repeated.",
            multiple=True,
        ),
        JSON_OPTION,
    ],
)
def verify_command(
    settings: "Settings",
    head: Path | None,
    deep: bool,
    witnesses: tuple[str, ...],
    document: str | None,
) -> None:
    """Find any edit, deletion, reordering or truncation of the ledger."""
    from evenhand.hypotheses.models import trusting
    from evenhand.ledger import SignedHead, verify
    from evenhand.ledger.witness import read_entries

    published = None if head is None else SignedHead.from_json(json.loads(head.read_text()))
    witnessed = [entry for place in witnesses for entry in read_entries(place)]
    trusted = [name for product in settings.products for name in product.trusted]
    with _ledger(settings) as (ledger, itself), trusting(trusted):
        verification = verify(ledger, published, deep, witnessed)
    figures = {
        "ok": verification.ok,
        "rows": verification.rows,
        "head": asdict(verification.head),
        "problems": [{"row": one.seq, "what": one.what} for one in verification.problems],
        "deep": deep,
        "snapshot": not itself,
    }
    if not emit(document, figures):
        for problem in verification.problems[:100]:
            click.echo(f"row {problem.seq}: {problem.what}")
        click.echo(
            f"{verification.rows:,} rows, head {verification.head.seq} {verification.head.hash}, "
            f"{len(verification.problems)} problems"
        )
    if not verification.ok:
        raise click.exceptions.Exit(1)


@command.command(
    "proof",
    params=[
        CONFIG,
        click.Argument(["key"]),
        option("--tenant NAME", "Whose key.  [default: the only tenant]"),
        option(
            "--since FILE",
            "An earlier checkpoint; the proof shows that nothing before it was changed.",
            OLD_FILE,
        ),
        option("--out FILE", "A new file.", click.Path(path_type=Path), required=True),
    ],
)
def proof_command(
    settings: "Settings", key: str, tenant: str | None, since: Path | None, out: Path
) -> None:
    """A proof for one applicant that the decision with this KEY is in the ledger."""
    import os

    from evenhand.ledger.merkle import proof_of_decision

    tenants = {product.tenant for product in settings.products}
    if tenant is None and len(tenants) > 1:
        raise InvalidInput("there are several tenants.", hint="add --tenant NAME.")
    earlier = None if since is None else since.read_text(encoding="utf-8")
    with _ledger(settings) as (ledger, _):
        proof = proof_of_decision(ledger, tenant or tenants.pop(), key, earlier)
    handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps(proof, indent=1, sort_keys=True) + "\n")
    click.echo(f"Proof: {out}\nCheck it: python verifier.py --proof {out}")


@command.command(
    "pack",
    params=[
        CONFIG,
        *WHICH,
        OUT,
        option("--reveal NAME", "Reveal the secrets of ended windows, in this person's name."),
    ],
)
def pack_command(settings: "Settings", out: Path, reveal: str | None, **which: Any) -> None:
    """Everything that an auditor needs, in one directory, with a verifier that needs no package."""
    from evenhand.service.audit_pack import pack

    with _ledger(settings) as (ledger, itself):
        if reveal is not None and not itself:
            raise InvalidInput(
                "secrets are revealed by the running service.", hint="POST /v1/windows/NAME/reveal."
            )
        pack(ledger, *_chosen(settings, **which), out, reveal_by=reveal)
    click.echo(
        f"Pack: {out}\nVerify it: cd {out} && "
        "python verifier.py ledger.jsonl --secrets secrets.json --head head.json --pack pack.json"
    )


@command.command(
    "check-pack",
    params=[
        click.Argument(
            ["directory"], type=click.Path(exists=True, file_okay=False, path_type=Path)
        ),
        option("--public-key HEX", "The ledger's key, from elsewhere."),
    ],
)
def check_pack_command(directory: Path, public_key: str | None) -> None:
    """Verify a pack with evenhand's own copy of the verifier, not the one that lies in it."""
    from evenhand.ledger import standalone_verifier

    words = [str(directory / "ledger.jsonl")]
    for name in ("secrets", "head", "pack"):
        words += [f"--{name}", str(directory / f"{name}.json")]
    words += [] if public_key is None else ["--public-key", public_key]
    try:
        code = standalone_verifier.main(words)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(
            f"{directory} is no pack that can be read: {type(error).__name__}: {error}"
        ) from error
    if code:
        raise click.exceptions.Exit(code)


@command.command(
    "export",
    params=[
        CONFIG,
        *WHICH,
        option(
            "--format kind",
            "Whose format.",
            click.Choice(("obp", "dsjson", "parquet")),
            required=True,
        ),
        option("--out FILE", "The file to write.", click.Path(path_type=Path), required=True),
    ],
)
def export_command(settings: "Settings", kind: str, out: Path, **which: Any) -> None:
    """Decisions with propensities for other tools: Open Bandit Pipeline (.npz), VW (dsjson),
    Parquet.
    """
    from evenhand.service.audit_pack import export_decisions

    chosen, period = _chosen(settings, **which)
    with _ledger(settings) as (ledger, _):
        rows = (row for row in ledger.history(*chosen.names) if period.holds(row.at))
        click.echo(f"{export_decisions(rows, chosen, out, kind):,} decisions: {out}")


@command.command("backup", params=[CONFIG, OUT])
def backup_command(settings: "Settings", out: Path) -> None:
    """A consistent copy with a signed head. The keyring is not in it: keep it elsewhere."""
    from evenhand.ledger import backup

    with _ledger(settings) as (ledger, _):
        click.echo(f"Backup: {backup(ledger, out)}")


@command.command(
    "restore",
    params=[
        CONFIG,
        BY,
        click.Argument(
            ["directory"], type=click.Path(exists=True, file_okay=False, path_type=Path)
        ),
    ],
)
def restore_command(settings: "Settings", by: str, directory: Path) -> None:
    """Put a backup in the place of a lost ledger.

    It answers what it holds, and draws nothing until confirm-gap.
    """
    from evenhand.ledger import Keyring, SystemClock, restore
    from evenhand.ledger.postgres import without_secrets

    keyring, clock = Keyring.from_source(settings.keyring), SystemClock()
    restore(directory, settings.ledger, keyring=keyring, clock=clock, by=by)
    click.echo(
        f"Restored: {without_secrets(settings.ledger)}\n"
        "It does not draw until you have looked into the gap: evenhand audit confirm-gap"
    )


@command.command("confirm-gap", params=[CONFIG, BY, CHECKED])
def confirm_gap_command(settings: "Settings", by: str, note: str) -> None:
    """After a restore: what may be missing has been looked into; the ledger draws again."""
    with _writable(settings) as ledger:
        ledger.confirm_gap(by, note)
    click.echo("Confirmed; the ledger draws again.")


@command.command("confirm-clock", params=[CONFIG, BY, CHECKED])
def confirm_clock_command(settings: "Settings", by: str, note: str) -> None:
    """After a refused clock: it has been looked at and is right. Restart the service afterwards."""
    with _writable(settings) as ledger:
        ledger.confirm_clock(by, note)
    click.echo("Confirmed; rows are dated by this clock again.")


@command.command(
    "plan-windows",
    params=[CONFIG, BY, option("--days D", "Days in a window.", float, required=True), WHY],
)
def plan_windows_command(settings: "Settings", by: str, days: float, note: str) -> None:
    """Change the length of windows, from the end of the present one on."""
    with _writable(settings) as ledger:
        plan = ledger.plan_windows(days * 86400.0, by, note)
    begins = datetime.fromtimestamp(plan.origin, UTC).isoformat(timespec="seconds")
    click.echo(f"Windows of {days:g} days begin at {begins}; now set window_days = {days:g}.")


@command.command(
    "rotate-root",
    params=[
        CONFIG,
        BY,
        WHY,
        flag(
            "--replicas-restarted",
            "Every replica has been restarted with the new root in its keyring; PostgreSQL only.",
        ),
    ],
)
def rotate_root_command(settings: "Settings", by: str, note: str, replicas_restarted: bool) -> None:
    """Take up a new root key: the first call adds one to the keyring's file, the second uses it.

    In between, give the file to every replica and restart them: a replica without the new root
    stops when it is taken up. With PostgreSQL the second call asks you to say that you have done
    so. Old windows keep their root.
    """
    import os

    from evenhand.service.server import open_keyring

    is_file = not settings.keyring.startswith(("env:", "command:"))
    path = Path(settings.keyring)
    made = path.with_name(path.name + ".new")
    with _writable(settings) as ledger:
        keyring = ledger.keyring
        if keyring.active + 1 < keyring.roots:
            if "://" in settings.ledger and not replicas_restarted:
                raise InvalidInput(
                    f"root {keyring.active + 1} is in the keyring and not yet taken up; replicas "
                    "that were not restarted since do not hold it, and would stop.",
                    hint="give the keyring to every replica, restart them, and add "
                    "--replicas-restarted.",
                )
            people = ledger.rotate_root(by, note)
            click.echo(f"Root {keyring.active} is active; {people:,} keys wrapped anew.")
            if is_file:  # from now on this file lets no older root seal anything
                keyring.save(made)
                os.replace(made, path)
                click.echo(f"{path} says so too: give it to every replica.")
            click.echo("Restart every replica before the next rotation.")
            return
    if not is_file:
        raise InvalidInput(
            "the keyring holds no newer root, and it is no file to which one could be added.",
            hint='add one to the JSON that the source gives: {"root": "...", "newer": ["..."]}.',
        )
    open_keyring(settings).with_new_root().save(made)
    os.replace(made, path)
    again = "run again with --replicas-restarted" if "://" in settings.ledger else "run again"
    click.echo(f"A new root is in {path}. Give it to every replica, restart them, and {again}.")
