"""The options that describe a table and a problem, shared by the commands that read one."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]


def _named(module: str, registry: str, metavar: str) -> dict[str, Any]:
    """How an option is read that names an entry of a registry; names of other packages are known,
    too.
    """

    def check(_: click.Context, __: click.Parameter, value: str | tuple[str, ...] | None) -> Any:
        known = getattr(
            import_module(module), registry
        )  # loaded when the command runs, not for --help
        for name in (value,) if isinstance(value, str) else value or ():
            if name not in known:
                raise click.BadParameter(f"{name!r} is not one of {', '.join(map(repr, known))}.")
        return value

    return {"callback": check, "metavar": metavar}


RATE_NAME = _named("evenhand.fairness.rates", "RATES", "[fpr|fnr|selection]")
CLASS_NAME = _named(
    "evenhand.hypotheses.named", "CLASSES", "[stumps|thresholds|linear|tree|logistic|lightgbm]"
)

MEANING_OPTIONS = (
    click.option("--label", metavar="COL", help="Column with the outcome (was the loan repaid?)."),
    click.option(
        "--good",
        metavar="VALUE",
        help="The value of the label that is the good outcome. Default: 1 of 0/1 or -1/1.",
    ),
    click.option(
        "--bad",
        metavar="A,B",
        help="The values that are bad outcomes, to be named where there are several.",
    ),
    click.option("--group", metavar="COL", help="Column with the group whose rates are compared."),
    click.option("--groups", metavar="A,B", help="Keep only the rows of these groups."),
    click.option(
        "--features",
        metavar="A,B,C",
        help="Columns that a decision may use. Default: all but label and group.",
    ),
    click.option("--encode", is_flag=True, help="Turn text columns into one 0/1 column per value."),
    click.option(
        "--drop-missing",
        is_flag=True,
        help="Leave out rows with a missing value in a column that is used.",
    ),
    click.option(
        "--drop-unlabelled",
        is_flag=True,
        help="Leave out people without a label, those who were rejected in the past.",
    ),
    click.option(
        "--missing",
        metavar="A,B",
        help="How a missing value is written.  [default: ?, na, n/a, nan, null, none]",
    ),
    click.option(
        "--delimiter",
        default=",",
        show_default=True,
        metavar="CHAR",
        help="What separates the cells of a CSV.",
    ),
    click.option(
        "--fewest",
        type=click.IntRange(min=0),
        metavar="N",
        help="People with each outcome that every group needs.  [default: 10; solve, frontier: 0]",
    ),
)
"""What the columns of a table mean; `evenhand.cli.task.meaning` reads them."""
TABLE_OPTIONS = (click.argument("data", metavar="DATA"), *MEANING_OPTIONS)

PROBLEM_OPTIONS = (
    click.option(
        "--limit",
        type=float,
        default=0.05,
        show_default=True,
        help="Largest allowed difference of the rate between groups.",
    ),
    click.option(
        "--class",
        "kind",
        **CLASS_NAME,
        default="stumps",
        show_default=True,
        help="The rules to choose from.",
    ),
    click.option(
        "--score", metavar="COL", help="The score column for --class thresholds (high is good)."
    ),
    click.option(
        "--price-false-accept",
        default="1",
        show_default=True,
        metavar="X",
        help="Cost of accepting a bad outcome: a number or a column.",
    ),
    click.option(
        "--price-false-reject",
        default="1",
        show_default=True,
        metavar="Y",
        help="Cost of rejecting a good outcome: a number or a column.",
    ),
    click.option(
        "--group-use",
        type=click.Choice(("certify-only", "decide")),
        default="certify-only",
        show_default=True,
        help="Whether the group is only measured, or may influence the decision.",
    ),
)

ONE_RATE = click.option(
    "--rate",
    **RATE_NAME,
    default="fpr",
    show_default=True,
    help="The rate to hold even: false positive, false negative, selection.",
)
MANY_RATES = click.option(
    "--rate",
    **RATE_NAME,
    multiple=True,
    default=("fpr",),
    show_default=True,
    help="The rate to hold even; give it twice for equalised odds (--rate fpr --rate fnr).",
)


def with_options(*options: Command) -> Callable[[Command], Command]:
    """Apply click options so that they are listed in the order given."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def output_path(
    *suffixes: str,
) -> Callable[[click.Context, click.Parameter, Path | None], Path | None]:
    """A callback that refuses a path that cannot be written, before any work is done."""

    def check(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
        if value is None:
            return None
        if value.suffix.lower() not in suffixes:
            raise click.BadParameter(f"{value} must end in {' or '.join(suffixes)}.", ctx, param)
        if not value.absolute().parent.is_dir():
            raise click.BadParameter(
                f"the folder {value.absolute().parent} does not exist; create it first.", ctx, param
            )
        if value.is_dir():
            raise click.BadParameter(f"{value} is a folder; name a file.", ctx, param)
        return value

    return check
