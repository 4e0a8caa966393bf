"""The command line: one module per command, imported when it is called. To add a command, add its
line to COMMANDS.
"""

import sys
from errno import EPIPE
from importlib import import_module
from io import TextIOWrapper
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
    "keys": "evenhand.cli.serve:keys",
    "train": "evenhand.cli.serve:train",
    "audit": "evenhand.cli.audit",
    "db": "evenhand.cli.serve:db",
    "data": "evenhand.cli.data",
    "study": "evenhand.cli.study",
    "apply": "evenhand.cli.apply",
    "measure": "evenhand.cli.measure",
    "test": "evenhand.cli.apply:test",
    "evaluate": "evenhand.cli.evaluate",
}
"""Name -> module that holds the click command `command`, or "module:command". The order is that of
`evenhand --help`."""

POLICY_FIRST, OWN_JSON = ("apply", "test"), ("serve", "train")
"""The commands whose first word is a policy (.json), and those that read --json as they like."""


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let --json stand alone, or be followed by a name that ends in .json."""
        words, rest = [], list(args)
        name = next((word for word in args if not word.startswith("-")), "")
        while rest:
            word = rest.pop(0)
            if word == "--":
                words += [word, *rest]
                break
            if word == "--json" and name not in OWN_JSON:
                file = rest and rest[0].lower().endswith(".json")
                if name in POLICY_FIRST:
                    file = file and any(before.lower().endswith(".json") for before in words)
                word = f"--json={rest.pop(0) if file else '-'}"
            words.append(word)
        return super().parse_args(ctx, words)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name or "command")
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

    \b
    Which command measures what
      measure   decisions that were made, by whatever means; outcomes may be missing
      test      a policy of `solve` on new people whose outcomes are all known
      evaluate  what another policy would have cost, from a log with probabilities

    Each command explains itself with an example: evenhand COMMAND --help
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal or file that cannot show a sign gets "?"
            stream.reconfigure(errors="replace")
