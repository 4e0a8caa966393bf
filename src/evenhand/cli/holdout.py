"""`evenhand test`: rates, gaps and cost of a policy on people who had no part in choosing it."""

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from evenhand.cli.options import (
    FILE_OPTIONS,
    JSON_OPTION,
    RATE_NAME,
    UNSEEN,
    file_reading,
    option,
    split,
)
from evenhand.contracts import Json, Params
from evenhand.errors import InvalidInput
from evenhand.tables import chosen_groups, group_texts, listed, prepare, read_frame, two_values
from evenhand.words import LabelledSample

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.evaluation import PolicyFile, PolicyMeasurement


@click.command(
    "test",
    params=[
        click.Argument(["policy"], metavar="POLICY.JSON"),
        click.Argument(["data"], metavar="HOLDOUT"),
        option("--label COL", "Column with the outcome.  [as in POLICY]"),
        option("--good VALUE", "The good outcome.  [as in POLICY]"),
        option("--bad A,B", "The bad outcomes, if several."),
        option("--group COL", "Column with the group.  [as in POLICY]"),
        option("--groups A,B", "Keep only the rows of these groups."),
        option(
            "--rate",
            "What to measure; may be given several times.",
            RATE_NAME,
            multiple=True,
            default=("fpr", "fnr", "selection"),
        ),
        option("--limit", "The limit of the gap.  [as in POLICY]", float),
        option(
            "--delta", "All intervals hold at once with probability 1 - delta.", float, default=0.05
        ),
        UNSEEN,
        option("--drop-missing", "Leave out rows that lack a value or a group.", is_flag=True),
        option("--drop-unlabelled", "Leave out people without an outcome.", is_flag=True),
        *FILE_OPTIONS,
        JSON_OPTION,
    ],
)
def command(policy: str, data: str, document: str | None, **options: Any) -> None:
    """Test a policy of `evenhand solve --out` on people whose outcomes are all known.

    Rates, gaps and cost come with exact intervals, which hold if these people had no part in
    choosing the policy and were drawn independently.

    \b
    Example
      evenhand solve loans.csv --label repaid --good yes --group sex --out policy.json
      evenhand test policy.json holdout.csv

    \b
    Which command measures what
      test      a policy of ours on new people, all outcomes known
      measure   decisions that were made, by whatever means; outcomes may be missing
      evaluate  what another policy would have cost, from a log with probabilities
    """
    from evenhand.cli.show import console, emit, heading, show_lines
    from evenhand.evaluation import PolicyFile, measure_policy

    file = PolicyFile.read(policy)
    people, source, notes = read_people(file, data, options)
    limit = options["limit"] if options["limit"] is not None else file.document.get("limit", 0.05)
    rates = tuple(dict.fromkeys(options["rate"]))
    measured = measure_policy(
        file.policy,
        people,
        rates=rates,
        prices=file.prices,
        failure_probability=options["delta"],
    )
    if emit(document, figures(file, measured, limit, source, notes)):
        return
    screen = console()
    screen.print(heading(f"{source}: {measured.people:,} people, policy {file.source}"))
    show_lines(screen, [f"  note: {note}" for note in notes])
    show_test(screen, file, measured, limit)


def read_people(
    file: "PolicyFile", data: str, options: Params
) -> tuple[LabelledSample, str, list[str]]:
    """The new people as the policy sees them, the table's name, and what was done to it."""
    label, by = str(options["label"] or file.label or ""), str(options["group"] or file.group or "")
    for name, value in (("label", label), ("group", by)):
        if not value:
            raise InvalidInput(
                f"{file.source} does not name the {name}.", hint=f"add --{name} COL."
            )
    reading = {**file.reading, **file_reading(options)}
    frame, _ = read_frame(data, **reading).with_joined(by, [label, by])
    notes = list(frame.notes)
    frame = chosen_groups(frame, by, split(options["groups"]))
    for gaps, what, flag in (
        (frame[label].missing, f"the outcome {label!r}", "--drop-unlabelled"),
        (frame[by].missing, f"the group {by!r}", "--drop-missing"),
    ):
        if gaps.any() and not options[flag[2:].replace("-", "_")]:
            raise InvalidInput(
                f"{frame.source}: {what} is missing in {gaps.sum():,} of {len(gaps):,} rows.",
                hint=f"fill it in, or leave these rows out with {flag}. If outcomes are known "
                "for accepted people only, see evenhand measure and evenhand evaluate.",
            )
    frame = frame.where(~(frame[label].missing | frame[by].missing))
    good = options["good"] or (file.good if options["label"] is None else None)
    if not len(frame):
        raise InvalidInput(f"{data} has no person with an outcome and a group.")
    ready = prepare(
        frame, file.recipe, drop_missing=options["drop_missing"], unseen=options["unseen"]
    )
    kept = frame.where(ready.complete)
    signs, _ = two_values(kept, label, good, split(options["bad"]))
    groups = file.spelled(str(text) for text in group_texts(kept, by, notes))
    absent = [name for name in file.groups if name not in groups] if by == file.group else []
    if absent:
        notes.append(f"nobody here is of the group {listed(absent)}: no gap to it is tested")
    sample = LabelledSample(ready.features, np.array(groups), signs.astype(np.int64))
    return sample, frame.source, [*notes, *ready.notes]


def figures(
    file: "PolicyFile",
    measured: "PolicyMeasurement",
    limit: float,
    source: str,
    notes: list[str],
) -> Json:
    """The answer as a document."""
    limited = file.document.get("limited_rates", ["FPR"])
    known = {rate.symbol for rate in measured.rates}
    return {
        "policy": file.source,
        "table": source,
        "limit": limit,
        "verdicts": {s: measured.verdict(s, limit) for s in limited if s in known},
        **measured.to_json(),
        "cost_when_chosen": file.document.get("cost_per_person"),
        "notes": notes,
    }


def show_test(
    screen: "Console", file: "PolicyFile", measured: "PolicyMeasurement", limit: float
) -> None:
    """Rates with intervals, the gap against its limit, and the cost beside the old one."""
    from evenhand.cli.measure import show_rate
    from evenhand.cli.show import heading, show_lines

    limited = file.document.get("limited_rates", ["FPR"])
    sure = 1 - measured.failure_probability
    said = {
        "within": f"within the limit of {limit:g}, with probability {sure:g}",
        "above": f"ABOVE the limit of {limit:g}, with probability {sure:g}",
        "not shown": "no gap is shown: there is one group only"
        if len(measured.rates[0].groups) == 1
        else f"neither within nor above the limit of {limit:g} is shown: more people are needed",
    }
    for rate in measured.rates:
        show_rate(screen, rate)
        if rate.symbol in limited:
            verdict = measured.verdict(rate.symbol, limit)
            style = {"within": "green", "above": "bold red", "not shown": "yellow"}[verdict]
            show_lines(screen, [f"  {said[verdict]}"], style)
    if measured.cost is not None and measured.cost_interval is not None:
        name = "error rate" if file.prices == (1.0, 1.0) else "cost per person"
        lower, upper = measured.cost_interval
        screen.print(heading("\nCost"))
        before = file.document.get("cost_per_person")
        old = f"; on the table it was chosen on: {before:.4f}" if before is not None else ""
        show_lines(screen, [f"  {name}: {measured.cost:.4f} [{lower:.4f}, {upper:.4f}]{old}"])
    show_lines(
        screen,
        [
            f"\nAll intervals hold at once with probability {sure:g} for the population that these",
            "people were drawn from independently, if none of them helped to choose the policy.",
        ],
    )
