"""`evenhand plan`: what a launch will cost and bring, before anybody is decided about."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import (
    CLASS_NAME,
    MANY_RATES,
    MEANING_OPTIONS,
    output_path,
    with_options,
)

if TYPE_CHECKING:
    from evenhand.planning import LaunchPlan

NUMBERS = (
    click.option(
        "--shares",
        metavar="A=X,B=Y",
        help="Each group's share of the people, for example a=0.6,b=0.4.",
    ),
    click.option(
        "--bad-rates",
        metavar="A=X,B=Y",
        help="Each group's share of bad outcomes; one number if they are equal.",
    ),
    click.option(
        "--separation",
        type=float,
        help="Distance between the mean scores of good and bad, in standard deviations.",
    ),
    click.option("--auc", type=float, help="The same as an AUC: 0.76 is a separation of 1."),
)
TABLE = (
    click.option(
        "--data",
        metavar="TABLE",
        help="Past people with known outcomes, instead of the four numbers above.",
    ),
    *MEANING_OPTIONS,
    click.option(
        "--class",
        "kind",
        **CLASS_NAME,
        help="The rules.  [default: thresholds with --score, else stumps]",
    ),
    click.option(
        "--score", metavar="COL", help="The score column for --class thresholds (high is good)."
    ),
)
PROMISE = (
    click.option(
        "--limit",
        type=float,
        default=0.05,
        show_default=True,
        help="The gap that is never to be exceeded.",
    ),
    click.option(
        "--delta",
        type=float,
        default=0.05,
        show_default=True,
        help="How likely the promise may fail over the whole life.",
    ),
    MANY_RATES,
    click.option(
        "--group-use",
        type=click.Choice(("certify-only", "decide")),
        default="certify-only",
        show_default=True,
        help="Whether the group is only measured, or may influence the decision.",
    ),
    click.option(
        "--rules",
        type=click.IntRange(min=1),
        help="How many rules the class has.  [default: by class]",
    ),
)
VOLUME = (
    click.option("--people", type=int, help="How many people will come in all.  [default: 100000]"),
    click.option("--per-day", type=float, help="People per day; with --days it gives --people."),
    click.option("--days", type=float, help="Days of the whole life."),
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
    click.option("--audit-budget", type=float, help="Bad accepts that audits may cost at most."),
)
RUN = (
    click.option(
        "--lives",
        type=click.IntRange(min=1),
        default=8,
        show_default=True,
        help="Simulated lives behind each figure.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="The seed of the first life.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        callback=output_path(".png", ".svg", ".pdf"),
        metavar="PICTURE",
        help="Draw the plan: .png, .svg or .pdf.",
    ),
    click.option(
        "--json",
        "document",
        type=click.Path(path_type=Path),
        callback=output_path(".json"),
        metavar="PLAN.JSON",
        help="Save all figures and curves.",
    ),
)


@click.command("plan")
@with_options(*NUMBERS, *TABLE, *PROMISE, *VOLUME, *RUN)
def command(out: Path | None, document: Path | None, **options: Any) -> None:
    """Tell what a launch will cost and bring, before anybody is decided about.

    From a few numbers about the people who will come, or from a table of past people, it simulates
    the certified learner's whole life: when the learned policy gets its weight, how many people are
    accepted to learn and what they cost, what remains to be paid beyond the best policy within the
    limit, the same for the paper's two-phase algorithm and for explore-then-commit, and whether it
    is worth it at all. It takes seconds.

    \b
    Example: 60% of the people belong to group a, 20% of them turn out bad, 30% of group b
      evenhand plan --shares a=0.6,b=0.4 --bad-rates a=0.2,b=0.3 --auc 0.76 \\
          --limit 0.05 --people 50000 --price-false-accept 5 --lives 4 --out plan.png

    \b
    Example: from past people
      evenhand plan --data loans.csv --label repaid --good yes --group sex \\
          --score credit_score --limit 0.1 --per-day 200 --days 365

    \b
    How to read it
      bad accept     somebody accepted whose outcome is bad; it costs --price-false-accept
      audit coin     a coin that ignores the person and accepts; without it nothing could be certified
      best constant  accepting or rejecting everybody: a gap of exactly 0 and nothing to learn
      regret         cost beyond the best policy within the limit, which only a simulation knows
      rules          the promise must hold for all rules of the class at once; more rules, later weight

    A plan is an expectation, not a certificate: it is as good as the numbers it was given.
    """
    from evenhand.cli.planned import make, show_plan
    from evenhand.cli.show import console, progress

    shown = console()
    with progress("simulated lives"):
        plan = make(options, shown)
    show_plan(shown, plan)
    if document is not None:
        document.write_text(
            json.dumps(plan.to_json(), indent=1, allow_nan=False) + "\n", encoding="utf-8"
        )
    if out is not None:
        draw(plan, out)
    click.echo(
        "".join(
            f"\n{name}: {path}"
            for name, path in (("Picture", out), ("Figures", document))
            if path is not None
        )
    )


def draw(plan: "LaunchPlan", path: Path) -> None:
    """Write the picture."""
    from evenhand.report import plan_figure, save_figure

    save_figure(plan_figure(plan), path)
