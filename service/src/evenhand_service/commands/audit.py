"""`evenhand audit`: verify, pack, export, archive, backup and restore a ledger."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.options import INPUT_FILE, Function, OutputFile, json_options
from evenhand.cli.show import emit
from evenhand.errors import InvalidInput

if TYPE_CHECKING:
    from evenhand_service import Product, Settings
    from evenhand_service.audit_pack import Period
    from evenhand_service.ledger import Keyring, Ledger


def _settings(_: click.Context, __: click.Parameter, path: Path) -> "Settings":
    from evenhand_service import load_settings

    return load_settings(path)


config_option = click.option(
    "--config",
    "settings",
    metavar="FILE",
    type=INPUT_FILE,
    required=True,
    callback=_settings,
    help="The settings of the service (TOML).",
)
out_folder_option = click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    required=True,
    help="A new directory.",
)
checked_option = click.option("--note", metavar="TEXT", required=True, help="What was checked.")
why_option = click.option("--note", metavar="TEXT", default="", help="Why.")
by_option = click.option(
    "--by", metavar="NAME", required=True, help="Who does it; recorded in the ledger."
)


archive_option = click.option(
    "--archive",
    "archives",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="A folder that `archive` made: its rows are put back into a copy; may be repeated.",
)


def period_options(command: Function) -> Function:
    """The product and the days that an auditor asks about; each option is handed on by its name."""
    options = [
        click.option("--product", metavar="NAME", help="The product.  [default: the only one]"),
        click.option(
            "--from",
            "start",
            metavar="DAY",
            type=click.DateTime(["%Y-%m-%d"]),
            help="First day, UTC.",
        ),
        click.option(
            "--to",
            "end",
            metavar="DAY",
            type=click.DateTime(["%Y-%m-%d"]),
            help="Day after the last, UTC.",
        ),
    ]
    for option in reversed(options):  # the help begins with the option that is added last
        command = option(command)
    return command


@click.group("audit")
def command() -> None:
    """Verify a ledger, pack it for an auditor, export it, archive it, back it up and restore it.

    While the service runs, verify, pack, export and backup work on a snapshot.

    \b
    Example
      evenhand audit verify --config service.toml
    """


@contextlib.contextmanager
def _ledger(
    settings: "Settings", archives: tuple[Path, ...] = ()
) -> "Iterator[tuple[Ledger, bool]]":
    """(ledger, whether it is the ledger itself, and no snapshot of it); with archives, a copy into
    which their rows were put back.
    """
    from evenhand_service.ledger import SystemClock
    from evenhand_service.opening import is_read_only, ledger_or_snapshot

    with ledger_or_snapshot(settings, SystemClock()) as (ledger, itself):
        if not itself:
            note = "The service is running; this is a snapshot of its ledger."
            if is_read_only(settings):
                note = "The ledger cannot be written here; this is a copy of it."
            click.echo(note, err=True)
        if not archives:
            yield ledger, itself
            return
        from evenhand_service.ledger.archive import whole

        with whole(ledger, archives) as complete:
            yield complete, False


def _writable(settings: "Settings") -> "Ledger":
    from evenhand_service.ledger import SystemClock
    from evenhand_service.opening import open_ledger

    return open_ledger(settings, SystemClock())


def _chosen(
    settings: "Settings",
    product: str | None,
    start: datetime | None,
    end: datetime | None,
) -> "tuple[Product, Period]":
    """The product and the days that the options name."""
    from evenhand_service.audit_pack import Period

    chosen = [one for one in settings.products if product in (None, one.name)]
    if len(chosen) != 1:
        names = ", ".join(one.name for one in settings.products)
        raise InvalidInput(
            f"product {product!r} names {len(chosen)} products, and exactly one is needed; the "
            f"settings have {names}.",
            hint="add --product NAME.",
        )
    first = 0.0 if start is None else start.replace(tzinfo=UTC).timestamp()
    last = 1e12 if end is None else end.replace(tzinfo=UTC).timestamp()
    return chosen[0], Period(first, last)


@command.command("verify")
@config_option
@click.option(
    "--head",
    metavar="FILE",
    type=click.Path(exists=True, path_type=Path),
    help="A head that was published before.",
)
@click.option(
    "--deep",
    is_flag=True,
    help="Also open every sealed field, and recompute draws and acceptances.",
)
@click.option(
    "--witness",
    "witnesses",
    metavar="PLACE",
    multiple=True,
    help="A witness's file or URL, besides those of the settings; may be repeated.",
)
@archive_option
@json_options
def verify_command(
    settings: "Settings",
    head: Path | None,
    deep: bool,
    witnesses: tuple[str, ...],
    archives: tuple[Path, ...],
    document: str | Path | None,
) -> None:
    """Find any edit, deletion, reordering or truncation of the ledger.

    The witnesses of the settings are read; one that cannot be is named, and is no problem.
    """
    from evenhand.hypotheses.models import trusting
    from evenhand_service.ledger import Invalid, SignedHead, verify
    from evenhand_service.ledger.archive import rows_left_out
    from evenhand_service.ledger.decision_draw import GAPS, has_gap
    from evenhand_service.ledger.standalone_verifier import Problem
    from evenhand_service.ledger.witness import read_entries
    from evenhand_service.product_changes import GuaranteeChanged, require_unchanged

    published = None if head is None else SignedHead.from_json(json.loads(head.read_text()))
    witnessed = [entry for place in witnesses for entry in read_entries(place)]
    for place in (str(one.get("path", one.get("url"))) for one in settings.witnesses):
        try:
            witnessed += read_entries(place)
        except Invalid as error:
            click.echo(f"A witness of the settings is not read: {error.sentence}", err=True)
    trusted = [name for product in settings.products for name in product.trusted]
    with _ledger(settings, archives) as (ledger, itself), trusting(trusted):
        verification = verify(ledger, published, deep, witnessed)
        for product in settings.products if verification.ok else ():
            try:
                require_unchanged(ledger.policies(product.name), product, ledger.keyring.public_key)
            except GuaranteeChanged as changed:  # of the settings, and no problem of the ledger
                click.echo(f"The settings are not those of the ledger: {changed}", err=True)
        left_out = rows_left_out(ledger)
        with ledger.store.reader.connect() as connection:
            gap = has_gap(connection.execute(GAPS))
    if gap:
        what = "the ledger was restored or put back, and nobody has confirmed the gap"
        found = (*verification.problems, Problem(verification.head.seq, what))
        verification = replace(verification, problems=found)
    figures = {
        "ok": verification.ok,
        "rows": verification.rows,
        "head": asdict(verification.head),
        "problems": [{"row": one.seq, "what": one.what} for one in verification.problems],
        "deep": deep,
        "left_out": left_out,
        "snapshot": not itself,
    }
    if not emit(document, figures):
        for problem in verification.problems[:100]:
            click.echo(f"row {problem.seq}: {problem.what}")
        click.echo(
            f"{verification.rows:,} rows, head {verification.head.seq} {verification.head.hash}, "
            f"{len(verification.problems)} problems"
        )
        if left_out:
            click.echo(f"{left_out:,} of the rows are in archives that were not given (--archive)")
    if not verification.ok:
        raise click.exceptions.Exit(1)


@command.command("proof")
@config_option
@click.argument("key")
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), required=True, help="A new file."
)
@archive_option
def proof_command(settings: "Settings", key: str, out: Path, archives: tuple[Path, ...]) -> None:
    """A proof for one applicant that the decision with this KEY is in the ledger."""
    from evenhand_service.ledger.audit import write_for_owner
    from evenhand_service.ledger.merkle import proof_of_decision

    with _ledger(settings, archives) as (ledger, _):
        proof = proof_of_decision(ledger, key)
    write_for_owner(out, json.dumps(proof, indent=1, sort_keys=True) + "\n")
    click.echo(f"Proof: {out}\nCheck it: python verifier.py --proof {out}")


@command.command("pack")
@config_option
@period_options
@out_folder_option
@click.option(
    "--reveal",
    metavar="NAME",
    help="Reveal the secrets of ended windows, in this person's name.",
)
@click.option(
    "--with-problems",
    is_flag=True,
    help="Pack the chain of a ledger that does not verify, and sign the problems with it.",
)
@archive_option
def pack_command(
    settings: "Settings",
    product: str | None,
    start: datetime | None,
    end: datetime | None,
    out: Path,
    reveal: str | None,
    with_problems: bool,
    archives: tuple[Path, ...],
) -> None:
    """Everything that an auditor needs, in one directory, with a verifier that needs no package.

    The ledger is verified first, as by `verify --deep`; of one that does not verify nothing is
    signed.
    """
    from evenhand.hypotheses.models import trusting
    from evenhand_service.audit_pack import pack

    trusted = [name for one in settings.products for name in one.trusted]
    with _ledger(settings) as (ledger, itself), trusting(trusted):
        if reveal is not None and not itself:
            raise InvalidInput(
                "secrets are revealed by the running service.", hint="POST /v1/windows/NAME/reveal."
            )
        chosen, period = _chosen(settings, product, start, end)
        pack(
            ledger,
            chosen,
            period,
            out,
            reveal_by=reveal,
            with_problems=with_problems,
            archives=archives,
        )
    click.echo(
        f"Pack: {out}\nVerify it: cd {out} && "
        "python verifier.py ledger.jsonl --secrets secrets.json --head head.json --pack pack.json"
    )


@command.command("check-pack")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--public-key", metavar="HEX", help="The ledger's key, from elsewhere.")
def check_pack_command(directory: Path, public_key: str | None) -> None:
    """Verify a pack with evenhand's own copy of the verifier, not the one that lies in it."""
    from evenhand_service.ledger import standalone_verifier

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


@command.command("export")
@config_option
@period_options
@click.option(
    "--out",
    metavar="FILE",
    type=OutputFile(".csv", ".parquet"),
    required=True,
    help="The file to write.",
)
@archive_option
def export_command(
    settings: "Settings",
    product: str | None,
    start: datetime | None,
    end: datetime | None,
    out: Path,
    archives: tuple[Path, ...],
) -> None:
    """Decisions with propensities as a table, for `evenhand evaluate` and other tools."""
    from evenhand_service.audit_pack import export_decisions
    from evenhand_service.ledger.archive import require_all
    from evenhand_service.product_changes import require_unchanged

    chosen, period = _chosen(settings, product, start, end)
    with _ledger(settings, archives) as (ledger, _):
        require_all(ledger, period.start)
        require_unchanged(
            ledger.policies(chosen.name), chosen, ledger.keyring.public_key
        )  # or columns get other names
        rows = (row for row in ledger.history(chosen.name) if period.holds(row.at))
        click.echo(f"{export_decisions(rows, chosen, out):,} decisions: {out}")


@command.command("archive")
@config_option
@by_option
@click.option(
    "--before",
    metavar="DAY",
    type=click.DateTime(["%Y-%m-%d"]),
    required=True,
    help="Windows that had ended by this day, UTC.",
)
@out_folder_option
def archive_command(settings: "Settings", by: str, before: datetime, out: Path) -> None:
    """Move the rows of ended windows into a folder, verify it, and remove them here.

    The chain goes on. People whose rows are archived can be erased as before; a retry of an
    archived key is refused, and so is a late label. Keep the folder: it is the only copy. Stop a
    service on SQLite first; on PostgreSQL give the URL of the tables' owner.
    """
    from evenhand_service.archiving import archive_closed

    until = before.replace(tzinfo=UTC).timestamp()
    with _writable(settings) as ledger:
        told = archive_closed(ledger, settings.products, until, out, by=by)
    click.echo(
        f"Archive: {out}\nRows {told['first']} to {told['last']}: {told['rows']:,} left the "
        f"ledger.\nVerify it: cd {out} && python verifier.py archive.jsonl --head head.json"
    )


@command.command("backup")
@config_option
@out_folder_option
def backup_command(settings: "Settings", out: Path) -> None:
    """A consistent copy with a signed head. The keyring is not in it: keep it elsewhere.

    The ledger is verified first. One that does not verify is copied without a signed head (exit 1).
    """
    from evenhand_service.ledger import backup

    with _ledger(settings) as (ledger, _):
        click.echo(f"Backup: {backup(ledger, out)}")


@command.command("restore")
@config_option
@by_option
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
def restore_command(settings: "Settings", by: str, directory: Path) -> None:
    """Put a backup in the place of a lost ledger.

    It answers what it holds, and draws nothing until confirm-gap.
    """
    from evenhand_service.ledger import Keyring, SystemClock, restore
    from evenhand_service.ledger.postgres import without_secrets

    keyring = Keyring.from_source(settings.keyring)
    restore(directory, settings.ledger, keyring=keyring, clock=SystemClock(), by=by)
    click.echo(
        f"Restored: {without_secrets(settings.ledger)}\n"
        "It does not draw until you have looked into the gap: evenhand audit confirm-gap"
    )


@command.command("confirm-gap")
@config_option
@by_option
@checked_option
def confirm_gap_command(settings: "Settings", by: str, note: str) -> None:
    """After a restore: what may be missing has been looked into; the ledger draws again."""
    with _writable(settings) as ledger:
        ledger.confirm_gap(by, note)
    click.echo("Confirmed; the ledger draws again.")


@command.command("confirm-clock")
@config_option
@by_option
@checked_option
def confirm_clock_command(settings: "Settings", by: str, note: str) -> None:
    """After a clock error: the clock has been checked and is right. Restart the service then."""
    with _writable(settings) as ledger:
        ledger.confirm_clock(by, note)
    click.echo("Confirmed; rows are dated by this clock again.")


@command.command("plan-windows")
@config_option
@by_option
@click.option("--days", metavar="D", type=float, required=True, help="Days in a window.")
@why_option
def plan_windows_command(settings: "Settings", by: str, days: float, note: str) -> None:
    """Change the length of windows, from the end of the present one on."""
    with _writable(settings) as ledger:
        plan = ledger.plan_windows(days * 86400.0, by, note)
    begins = datetime.fromtimestamp(plan.origin, UTC).isoformat(timespec="seconds")
    click.echo(f"Windows of {days:g} days begin at {begins}; now set window_days = {days:g}.")


@command.command("rotate-root")
@config_option
@by_option
@why_option
@click.option(
    "--only-add",
    is_flag=True,
    help="Add the root and do not use it yet, for replicas whose keyring is a copy elsewhere.",
)
def rotate_root_command(settings: "Settings", by: str, note: str, only_add: bool) -> None:
    """Add a new root key to the keyring's file, and take it up; old windows keep their root.

    Replicas that read the same file take the root up by themselves. One whose keyring is a copy
    stops unless it got the new root before: add it with --only-add, give the file to every replica,
    then rotate.
    """
    path = settings.keyring_file
    with _writable(settings) as ledger:
        keyring = ledger.keyring
        if keyring.active + 1 == keyring.roots:
            if path is None:
                raise InvalidInput(
                    "the keyring holds no newer root, and it is no file to which one could be "
                    "added.",
                    hint='add one to the JSON that the source gives: {"root": "...", "newer": '
                    '["..."]}.',
                )
            _replace_keyring(path, keyring.with_new_root())
            keyring.reread()
        if only_add:
            click.echo(f"A new root is in {path}: give it to every replica, then rotate.")
            return
        people = ledger.rotate_root(by, note)
        click.echo(f"Root {keyring.active} is active; {people:,} keys wrapped anew.")
        if path is not None:  # from now on this file lets no older root seal anything
            _replace_keyring(path, keyring)
            click.echo(f"{path} says so too: keep a copy of it.")


def _replace_keyring(path: Path, keyring: "Keyring") -> None:
    """At once: who reads the file meanwhile reads the old one or the new one."""
    made = path.with_name(path.name + ".new")
    keyring.save(made)
    made.replace(path)
