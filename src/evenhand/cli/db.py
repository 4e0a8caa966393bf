"""`evenhand db`: what the owner of the ledger's database does."""

from typing import TYPE_CHECKING

import click

from evenhand.cli.audit import CONFIG

if TYPE_CHECKING:
    from evenhand.service import Settings


@click.group("db")
def command() -> None:
    """Which database holds the ledger, and who may do what in it.

    \b
    Example
      evenhand db show --config service.toml
    """


@command.command("show")
@CONFIG
def show_command(settings: "Settings") -> None:
    """Where the ledger is, and whether the role of the settings could change its chain."""
    from evenhand.ledger.postgres import could_change

    if "://" not in settings.ledger:
        click.echo(f"SQLite: {settings.ledger}; whoever can write the file can change it.")
        return
    role, changeable = could_change(settings.ledger)
    law = "could change the chain: evenhand db grant" if changeable else "can append, not change"
    click.echo(f"PostgreSQL: the role {role} {law}.")


@command.command("grant")
@CONFIG
@click.argument("role")
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
