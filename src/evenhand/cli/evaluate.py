"""`evenhand evaluate`: what a log of decisions says about another policy: its cost and its gaps,
with intervals.
"""

import json
from pathlib import Path
from typing import Any

import click

from evenhand.cli.options import MANY_RATES, output_path, with_options

FORMATS = ("parquet", "csv", "jsonl", "obp", "dsjson", "vw")
SUFFIXES = (".parquet", ".csv", ".jsonl", ".npz", ".dsjson", ".vw", ".dat")
LOG = (
    click.argument("logs", metavar="LOGS"),
    click.option(
        "--policy",
        metavar="POLICY",
        help="The candidate: a policy as JSON, accept-all, or reject-all.",
    ),
    click.option(
        "--format",
        "kind",
        type=click.Choice(FORMATS),
        help="Whose format LOGS has.  [default: by suffix]",
    ),
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="ROLE=COL",
        help="A column with another name; roles: id, group, accept, acceptance, propensity, label, count. Repeat it.",
    ),
    click.option(
        "--good",
        metavar="VALUE",
        help="The value of the label (VW: the cost of an accept) that is the good outcome.",
    ),
    click.option("--features", metavar="A,B,C", help="Features to keep.  [default: all]"),
    click.option(
        "--groups",
        metavar="A,B",
        help="The groups to compare; other people are outside.  [default: all]",
    ),
    click.option(
        "--skip-first",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Leave out the first N rows, because the candidate was chosen with their help.",
    ),
)
PROMISE = (
    MANY_RATES,
    click.option(
        "--limit", type=float, default=0.05, show_default=True, help="The largest allowed gap."
    ),
    click.option(
        "--delta",
        type=float,
        default=0.05,
        show_default=True,
        help="How likely any interval may be wrong, at any time: shared by the cost and all gaps.",
    ),
    click.option(
        "--price-false-accept",
        type=float,
        default=1.0,
        show_default=True,
        help="Cost of accepting a bad outcome.",
    ),
    click.option(
        "--price-false-reject",
        type=float,
        default=1.0,
        show_default=True,
        help="Cost of rejecting a good outcome.",
    ),
)
OUT = (
    click.option(
        "--figure",
        type=click.Path(path_type=Path),
        callback=output_path(".png", ".svg", ".pdf"),
        metavar="FILE",
        help="Draw the gaps with their bands along the log, against the limit.",
    ),
    click.option(
        "--json",
        "document",
        type=click.Path(path_type=Path),
        callback=output_path(".json"),
        metavar="FILE.JSON",
        help="Save all figures.",
    ),
    click.option(
        "--convert-to",
        "converted",
        type=click.Path(path_type=Path),
        callback=output_path(*SUFFIXES),
        metavar="FILE",
        help="Write the log in another format, by suffix; then --policy may be left out.",
    ),
)


@click.command("evaluate")
@with_options(*LOG, *PROMISE, *OUT)
def command(logs: str, policy: str | None, converted: Path | None, **options: Any) -> None:
    """Tell from a log of past decisions what another policy would cost, and how far its rates would
    be apart.

    LOGS holds, for each person: the features, the group, the probability with which the person was
    accepted, whether it happened, and the outcome of the accepted. Nobody sees the outcomes of the
    rejected, so the accepted are weighted by their probability. Logs without probabilities are
    refused: nothing can be certified from them. `demo` is a log of 20,000 invented loans.

    \b
    Example: would accepting everybody be dear?
      evenhand evaluate demo --policy accept-all --price-false-accept 3

    \b
    Example: a policy that was found on other people
      evenhand solve loans.csv --label repaid --good yes --group sex --out policy.json
      evenhand evaluate decisions.parquet --policy policy.json --rate fpr --limit 0.1 --figure gap.png

    \b
    Example: from Vowpal Wabbit's format to Parquet
      evenhand evaluate decisions.dsjson --convert-to decisions.parquet

    \b
    The formats, by suffix
      .parquet .csv .jsonl  columns id, group, accept, acceptance, label, feature_...
      .npz                  Open Bandit Pipeline's dict (action 1 accepts)
      .dsjson               Vowpal Wabbit's decision logs (action 1 accepts, 2 rejects)
      .vw .dat              Vowpal Wabbit's cb text, action:cost:probability

    The intervals hold at every row of the log at once, so a log may be looked at while it grows.
    The candidate must have been chosen without these rows; --skip-first leaves out those that were
    used.
    """
    from evenhand.cli import evaluated
    from evenhand.errors import InvalidInput

    if policy is None and converted is None:
        raise InvalidInput(
            "there is nothing to do: neither --policy nor --convert-to was given.",
            hint="--policy policy.json, or accept-all to begin with.",
        )
    log = evaluated.read(logs, options)
    if converted is not None:
        from evenhand.evaluation import write_log

        write_log(log, converted)
    if policy is not None:
        found = evaluated.judge(log, policy, options)
        evaluated.show(found, log, options)
        _save(found, options["document"], options["figure"])
    if converted is not None:
        click.echo(f"Log: {converted} ({len(log):,} rows)")


def _save(found: Any, document: Path | None, figure: Path | None) -> None:
    if document is not None:
        document.write_text(
            json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n", encoding="utf-8"
        )
        click.echo(f"Figures: {document}")
    if figure is not None:
        from evenhand.report import evaluation_figure, save_figure

        save_figure(evaluation_figure(found), figure)
        click.echo(f"Picture: {figure}")
