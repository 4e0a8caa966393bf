"""The command line: one module per command, imported when it is called. To add a command, add its
line to COMMANDS.
"""

from errno import EPIPE
from importlib import import_module
from typing import Any

import click

from evenhand.errors import EvenhandError

COMMANDS = {
    "demo": "evenhand.cli.demo",
    "solve": "evenhand.cli.solve",
    "frontier": "evenhand.cli.frontier",
    "simulate": "evenhand.cli.simulate",
    "compare": "evenhand.cli.compare",
    "plan": "evenhand.cli.plan",
    "serve": "evenhand.cli.serve",
    "train": "evenhand.cli.train",
    "audit": "evenhand.cli.audit",
    "data": "evenhand.cli.data",
    "study": "evenhand.cli.study",
    "evaluate": "evenhand.cli.evaluate",
}
"""Name -> module that holds the click command `command`. The order is that of `evenhand --help`."""


class RefusedCommand(click.ClickException):
    """An EvenhandError as one clean message on stderr: what is wrong, then the way out."""

    exit_code = 2

    def __init__(self, error: EvenhandError) -> None:
        hint = "" if error.hint is None else f"\nHint: {error.hint}"
        super().__init__(str(error).removesuffix(f" Hint: {error.hint}") + hint)


class LazyCommands(click.Group):
    """Commands that are imported when they are called; errors of the package end in a message, not
    in a traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except EvenhandError as error:
            raise RefusedCommand(error) from error
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
    """Yes/no decisions about people whose group rates differ by at most a limit.

    \b
    New here? These two lines show what it is about:
      evenhand demo
      evenhand solve evenhand-demo/lending.csv --label repaid --good yes --group group

    Each command explains itself with an example: evenhand COMMAND --help
    """
