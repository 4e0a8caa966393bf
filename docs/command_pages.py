"""Writes the reference of the command line from the commands themselves.

`python docs/command_pages.py` prints it. Every command of the library and of the service has a
section: its help, and a table of its options. Options that several commands share have one section.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import click

from evenhand.cli import main
from evenhand.cli.capacity import capacity_options
from evenhand.cli.gating import gate_options
from evenhand.cli.options import column_options, file_options, json_options
from evenhand.simulation.named import LEARNERS, POPULATIONS

HEAD = """\
# The command line

<!-- written by docs/command_pages.py from the commands -->

```{index} ! command line, ! evenhand command, ! exit code
```

`python -m evenhand` is the same as `evenhand`. `evenhand COMMAND --help` prints what this page
shows. An error is one message on standard error that says what to do.

| exit code | meaning |
|---|---|
| 0 | the command did its work |
| 1 | a check found something, or Ctrl-C ended the command |
| 2 | an option, a table, a file or a setting is wrong; the message says what to do |
| 3 | only with `--gate`: the data show neither "within" nor "above" |

Shell completion: `eval "$(_EVENHAND_COMPLETE=bash_source evenhand)"` in the start-up file of bash;
`zsh_source` for zsh, and `_EVENHAND_COMPLETE=fish_source evenhand | source` for fish.
"""

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def options_of(group: Decorator) -> list[click.Option]:
    """The options that a decorator adds to a command."""
    made = click.command()(group(lambda: None))
    return [param for param in made.params if isinstance(param, click.Option)]


def _names(options: list[click.Option]) -> set[str]:
    return {option.opts[0] for option in options}


FILE = options_of(file_options)
SHARED = {
    "Options for the columns of a table": [
        option for option in options_of(column_options) if option.opts[0] not in _names(FILE)
    ],
    "Options for reading a file": FILE,
    "Options for JSON": options_of(json_options),
    "Options for a gate in a build": options_of(gate_options),
    "Options for a capacity": options_of(capacity_options),
}
"""Groups of options, by the heading of their section."""


def cell(text: str) -> str:
    """A text that stands in one cell of a table as it is."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))  # every second one is code
    parts[::2] = (re.sub(r"[\\|*_$<`^\[]", r"\\\g<0>", part) for part in parts[::2])
    return "".join(parts)


def row(option: click.Option, context: click.Context) -> str:
    """The row of an option: its name and value, its help with the default."""
    name = option.opts[0]
    if not option.is_flag:
        name += f" {option.make_metavar(context)}"
    extra = option.get_help_extra(context)
    meaning = option.help or ""
    if extra.get("default"):
        meaning += f" Default: {extra['default']}."
    return f"| `{name.replace('|', chr(92) + '|')}` | {cell(meaning)} |"


def table(options: list[click.Option], context: click.Context) -> Iterator[str]:
    """The rows of several options."""
    yield from ("| option | meaning |", "|---|---|")
    yield from (row(option, context) for option in options)
    yield ""


def text(help_text: str) -> Iterator[str]:
    """The help of a command: paragraphs, and what stands in columns as it is."""
    for part in help_text.split("\n\n"):
        if "\b" in part:  # click's sign for text that keeps its lines
            first, *below = part.replace("\b", "").strip().splitlines()
            yield from ("```text", first, *dedent("\n".join(below)).splitlines(), "```", "")
        else:
            yield from (_prose(part), "")


def _prose(part: str) -> str:
    return " ".join(part.split()).replace("<", "\\<").replace("*", "\\*")


def anchor(heading: str) -> str:
    """The name of a heading in a link."""
    return heading.lower().replace(" ", "-")


def section(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    """The section of a command; the commands of a group follow it."""
    context = click.Context(command, info_name=name.split()[-1], parent=parent)
    usage = command.get_usage(context).removeprefix("Usage: ").replace("\n", " ")
    level = "##" if parent.command is main else "###"
    yield from (f"{level} evenhand {name}", "", f"`{' '.join(usage.split())}`", "")
    yield from text(command.help or "")
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from section(f"{name} {below}", found, context)
        return
    own = [
        option
        for option in command.params
        if isinstance(option, click.Option) and option.opts[0] != "--help" and not option.hidden
    ]
    also = []
    for heading, options in SHARED.items():
        if _names(options) <= _names(own):
            own = [option for option in own if option.opts[0] not in _names(options)]
            also.append(f"[{heading}](#{anchor(heading)})")
    if own:
        yield from table(own, context)
    if also:
        yield from (f"See also: {'; '.join(also)}.", "")


def named() -> Iterator[str]:
    """The populations and learners of `simulate`, `compare` and `study`."""
    for heading, known in (("Populations", POPULATIONS), ("Learners", LEARNERS)):
        yield from (f"## {heading}", "", "| name | what it is | options |", "|---|---|---|")
        for name, entry in known.items():
            options = ", ".join(f"`{one}`" for one in entry.options)
            yield f"| `{name}` | {cell(entry.text)} | {options} |"
        yield ""
    yield "Options of a learner follow its name: `two-phase:estimator=two-sided,bound=dkw`."
    yield ""


def page() -> str:
    """The whole page."""
    context = click.Context(main, info_name="evenhand", **main.context_settings)
    lines = [HEAD]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        lines += section(name, command, context)
    for heading, options in SHARED.items():
        lines += [f"## {heading}", "", *table(options, context)]
    lines += named()
    return "\n".join(lines)


def write(path: Path) -> None:
    """Write the page; if it has not changed it keeps its date."""
    made = page()
    if not path.exists() or path.read_text(encoding="utf-8") != made:
        path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    sys.stdout.write(page())
