"""A policy that was found before, on the people of a new table: `evenhand apply` decides about
them; `evenhand test` measures rates, gaps and cost on people who had no part in choosing it.
"""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from evenhand.cli.options import (
    CSV_FILE,
    FILE_OPTIONS,
    JSON_OPTION,
    NATURAL,
    RATE_NAME,
    UNSEEN,
    file_reading,
    flag,
    option,
    split,
)
from evenhand.cli.show import console, emit, heading, show_lines
from evenhand.contracts import Json, Params
from evenhand.errors import InvalidInput
from evenhand.tables import (
    Frame,
    chosen_groups,
    group_texts,
    listed,
    prepare,
    read_frame,
    two_values,
)
from evenhand.words import LabelledSample

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.evaluation import PolicyFile, PolicyMeasurement
    from evenhand.words import BoolArray, FloatArray, GroupArray


@click.command(
    "apply",
    params=[
        click.Argument(["policy"], metavar="POLICY.JSON"),
        click.Argument(["data"], metavar="NEW"),
        option(
            "--out DECISIONS.CSV",
            "Where the decisions are written: all columns of NEW, probability, decision.",
            CSV_FILE,
            default="decisions.csv",
        ),
        option("--seed", "The same table and seed give the same draws.", NATURAL, default=0),
        option(
            "--group COL",
            "Column with the group, where the policy may look at it.  [default: as in POLICY]",
        ),
        UNSEEN,
        flag(
            "--drop-missing", "Decide nothing about rows that lack a value: their cells stay empty."
        ),
        *FILE_OPTIONS,
        JSON_OPTION,
    ],
)
def command(policy: str, data: str, out: Path, document: str | None, **options: Any) -> None:
    """Decide about new people by a policy of `evenhand solve --out`.

    Columns are found by name, in any order; numbers, dates and categories are read as in the table
    that the policy was made with, which the policy file says. What does not fit is refused.

    \b
    Example
      evenhand solve loans.csv --label repaid --good yes --group sex --out policy.json
      evenhand apply policy.json new.csv --out decisions.csv

    A mixture decides with a coin: `probability` is that of being accepted, `decision` (1 or 0) is
    the draw with --seed.
    """
    from evenhand.evaluation import PolicyFile

    file = PolicyFile.read(policy)
    frame = read_frame(data, **{**file.reading, **file_reading(options)})
    if Path(data).resolve() == out.resolve():
        raise InvalidInput(f"--out {out} is the table itself.", hint="name another file.")
    drop = options["drop_missing"]
    group, known = groups_of(file, frame, options["group"], drop, options["unseen"])
    ready = prepare(frame.where(known), file.recipe, drop_missing=drop, unseen=options["unseen"])
    complete = known.copy()
    complete[known] = ready.complete
    group = None if group is None else group[complete]
    chance = file.policy.acceptance(ready.features, group)
    accepted = np.random.default_rng(options["seed"]).random(len(chance)) < chance
    names = write_decisions(frame, complete, chance, accepted, out)
    figures = {
        "policy": file.source,
        "table": frame.source,
        "people": len(frame),
        "decided": len(chance),
        "accepted": int(accepted.sum()),
        "expected_accepted": float(chance.sum()),
        "seed": options["seed"],
        "columns": list(names),
        "notes": [*frame.notes, *ready.notes],
        "out": str(out),
    }
    if emit(document, figures):
        return
    screen = console()
    screen.print(heading(f"{frame.source}: {len(frame):,} people, policy {file.source}"))
    show_lines(screen, [f"  note: {note}" for note in (*frame.notes, *ready.notes)])
    lines = [
        f"  decided about {len(chance):,}: {int(accepted.sum()):,} accepted "
        f"(expected {chance.sum():,.1f}), seed {options['seed']}",
        f"\nDecisions: {out} (columns {names[0]} and {names[1]} are new)",
    ]
    show_lines(screen, lines)


def groups_of(
    file: "PolicyFile", frame: Frame, name: str | None, drop: bool, unseen: str
) -> "tuple[GroupArray | None, BoolArray]":
    """The groups, where the policy may look at them, and who has one."""
    if not file.uses_group:
        return None, np.ones(len(frame), dtype=np.bool_)
    column = name or file.group or "group"
    frame, _ = frame.with_joined(column, [column])
    gaps = frame[column].missing
    if gaps.any() and not drop:
        raise InvalidInput(
            f"{frame.source}: the group {column!r}, which the policy looks at, is missing in "
            f"{gaps.sum():,} of {len(gaps):,} rows.",
            hint="fill it in, or add --drop-missing: nothing is decided about these rows.",
        )
    groups = np.array(file.spelled(str(text) for text in group_texts(frame, column, [])))
    strange = sorted(set(groups[~gaps].tolist()) - set(file.groups)) if file.groups else []
    if strange and unseen == "refuse":
        raise InvalidInput(
            f"{frame.source}: the group {column!r}, which the policy looks at, holds "
            f"{listed(map(repr, strange))}, which the policy has never seen; it knows "
            f"{listed(file.groups, 10)}.",
            hint="correct the values, or add --unseen ignore: the policy then treats these people "
            "as it treats a group without a rule of its own.",
        )
    return groups, ~gaps


def write_decisions(
    frame: Frame, complete: "BoolArray", chance: "FloatArray", accepted: "BoolArray", path: Path
) -> tuple[str, str]:
    """The table with two more columns, whose names are returned."""
    taken = set(frame.columns)
    names = tuple(
        next(name for name in (base, *(f"{base}.{i}" for i in range(2, 99))) if name not in taken)
        for base in ("probability", "decision")
    )
    answers = iter(zip(chance.tolist(), accepted.tolist(), strict=True))
    columns = [column.texts for column in frame.columns.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*frame.columns, *names])
        for row, decided in zip(zip(*columns, strict=True), complete.tolist(), strict=True):
            cells = ["" if cell is None else cell for cell in row]
            probability, yes = next(answers) if decided else ("", "")
            writer.writerow([*cells, probability, int(yes) if decided else ""])
    return names[0], names[1]


# evenhand test


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
        flag("--drop-missing", "Leave out rows that lack a value or a group."),
        flag("--drop-unlabelled", "Leave out people without an outcome."),
        *FILE_OPTIONS,
        JSON_OPTION,
    ],
)
def test(policy: str, data: str, document: str | None, **options: Any) -> None:
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
    from evenhand.evaluation import PolicyFile, measure_policy

    file = PolicyFile.read(policy)
    people, source, notes = read_people(file, data, options)
    limit = options["limit"] if options["limit"] is not None else file.document.get("limit", 0.05)
    rates = tuple(dict.fromkeys(options["rate"]))
    measured = measure_policy(
        file.policy, people, rates=rates, prices=file.prices, failure_probability=options["delta"]
    )
    if emit(document, test_document(file, measured, limit, source, notes)):
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
    for gaps, what, dropped in (
        (frame[label].missing, f"the outcome {label!r}", "--drop-unlabelled"),
        (frame[by].missing, f"the group {by!r}", "--drop-missing"),
    ):
        if gaps.any() and not options[dropped[2:].replace("-", "_")]:
            raise InvalidInput(
                f"{frame.source}: {what} is missing in {gaps.sum():,} of {len(gaps):,} rows.",
                hint=f"fill it in, or leave these rows out with {dropped}. If outcomes are known "
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


def test_document(
    file: "PolicyFile", measured: "PolicyMeasurement", limit: float, source: str, notes: list[str]
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
