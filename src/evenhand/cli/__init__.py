"""The command line: one module per command, imported when it is called. To add a command, add its
line to COMMANDS; another package adds its commands by the entry points `evenhand.commands`.
"""

import sys
from errno import EPIPE
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from io import TextIOWrapper
from typing import Any

import click

from evenhand.cli.messages import error_text, options_of
from evenhand.errors import EvenhandError

COMMANDS = {
    "demo": "evenhand.cli.demo",
    "solve": "evenhand.cli.solve",
    "certify": "evenhand.cli.certify",
    "alternatives": "evenhand.cli.alternatives",
    "frontier": "evenhand.cli.frontier",
    "simulate": "evenhand.cli.simulate",
    "compare": "evenhand.cli.compare",
    "plan": "evenhand.cli.plan",
    "data": "evenhand.cli.data",
    "study": "evenhand.cli.study",
    "apply": "evenhand.cli.apply",
    "explain": "evenhand.cli.explain",
    "measure": "evenhand.cli.measure",
    "impact": "evenhand.cli.impact",
    "test": "evenhand.cli.apply:test",
    "evaluate": "evenhand.cli.evaluate",
}
"""Name -> module that holds the click command `command`, or "module:command". The order is that of
`evenhand --help`."""

OF_THE_SERVICE = ("serve", "keys", "train", "audit", "db")
"""What the package evenhand-service adds; without it, these names say what to install."""


def added_commands() -> dict[str, EntryPoint]:
    """The commands of other packages, by name; none takes the place of a command of ours."""
    found = {entry.name: entry for entry in entry_points(group="evenhand.commands")}
    return {name: entry for name, entry in sorted(found.items()) if name not in COMMANDS}


class RefusedCommand(click.ClickException):
    """An EvenhandError as one clean message on stderr: what is wrong, the hint, and the options."""

    exit_code = 2

    def __init__(self, error: EvenhandError, command: click.Command | None = None) -> None:
        known = set() if command is None else options_of(command)
        super().__init__(error_text(error, known))


class LazyCommands(click.Group):
    """Commands that are imported when they are called; errors of the package end in a message, not
    in a traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of COMMANDS, then those of other packages."""
        return [*COMMANDS, *added_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name].partition(":")
            command: click.Command = getattr(import_module(module), name or "command")
            return command
        if entry := added_commands().get(cmd_name):
            command = entry.load()
            return command  # noqa: RET504 - its type is known by its name
        if cmd_name in OF_THE_SERVICE:
            raise click.UsageError(
                f"{cmd_name} is a command of the decision service: install the package "
                "evenhand-service (in a checkout: pip install -e . -e ./service)."
            )
        return None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except EvenhandError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            raise RefusedCommand(error, command) from error
        except OSError as error:
            if error.errno == EPIPE:  # the reader of our output has gone; click ends quietly
                raise
            raise RefusedCommand(
                EvenhandError(f"{error.filename} cannot be read or written: {error.strerror}.")
            ) from error


@click.group(
    cls=LazyCommands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(package_name="evenhand", prog_name="evenhand")
def main() -> None:
    """Fair accept/reject decisions when only accepted people reveal their outcome.

    \b
    New here? These two lines show what it is about:
      evenhand demo
      evenhand solve evenhand-demo/lending.csv --label repaid --good yes --group group

    \b
    Which command measures what
      measure   decisions that were made, by whatever means; outcomes may be missing
      impact    selection rates and impact ratios per group and intersection
      test      a policy of `solve` on new people whose outcomes are all known
      certify   the same, with a certificate and a policy that keeps the limit
      evaluate  what another policy would have cost, from a log with probabilities

    To ask whether another rule would be fairer at no more cost: evenhand alternatives

    Each command explains itself with an example: evenhand COMMAND --help
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal or file that cannot show a sign gets "?"
            stream.reconfigure(errors="replace")
