"""A policy that was found before, on the people of a new table: `evenhand apply` decides about
them; `evenhand test` measures rates, gaps and cost on people who had no part in choosing it.
"""

import csv
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from evenhand.cli.gating import Gating, gate_options
from evenhand.cli.messages import note_line
from evenhand.cli.options import (
    COMMA_LIST,
    CSV_FILE,
    INPUT_FILE,
    NATURAL,
    POSITIVE,
    FileOptions,
    Share,
    Unseen,
    file_options,
    json_options,
    rates_option,
    unseen_option,
)
from evenhand.cli.show import console, emit, heading, show_lines
from evenhand.cli.telling import Telling, fingerprint, leave, telling_options
from evenhand.errors import InvalidInput, collecting, raise_all
from evenhand.policies.reason_words import joined
from evenhand.result import Amount
from evenhand.shown import counted
from evenhand.tables import (
    MISSING_VALUE,
    Frame,
    Note,
    chosen_groups,
    group_texts,
    listed,
    many_left_out,
    prepare,
    read_rows,
    two_values,
    with_missing_group,
)
from evenhand.tables.frame import with_every_label, without_label
from evenhand.words import LabelledSample

if TYPE_CHECKING:
    from evenhand.evaluation import Measurement, PolicyFile
    from evenhand.words import BoolArray, FloatArray, GroupArray


@click.command("apply")
@click.argument("policy", metavar="POLICY.JSON")
@click.argument("data", metavar="NEW")
@click.option(
    "--out",
    metavar="DECISIONS.CSV",
    type=CSV_FILE,
    default="decisions.csv",
    help="Where the decisions are written: all columns of NEW, probability, decision.",
)
@click.option(
    "--seed",
    type=NATURAL,
    default=0,
    help="The same table and seed give the same draws, and the same estimates of --reasons.",
)
@click.option(
    "--group",
    metavar="COL",
    help="Column with the group, where the policy may look at it.  [default: as in POLICY]",
)
@unseen_option
@click.option(
    "--drop-missing",
    is_flag=True,
    help="Decide nothing about rows that lack a value: their cells stay empty.",
)
@click.option(
    "--reasons",
    is_flag=True,
    help="Add two columns: what speaks most against each person who is not accepted, and how exact "
    "this is.",
)
@click.option(
    "--words",
    metavar="WORDS.TOML",
    type=INPUT_FILE,
    help="With --reasons: your own words and codes, see evenhand explain.",
)
@click.option(
    "--reference",
    metavar="TABLE",
    help="With --reasons: the people to compare with.  [default: those of NEW]",
)
@click.option(
    "--most-reasons", type=POSITIVE, default=4, help="With --reasons: at most this many each."
)
@file_options
@json_options
def command(
    policy: str,
    data: str,
    out: Path,
    seed: int,
    group: str | None,
    unseen: Unseen,
    drop_missing: bool,
    reasons: bool,
    words: Path | None,
    reference: str | None,
    most_reasons: int,
    reading: FileOptions,
    document: str | Path | None,
) -> None:
    """Decide about new people with a policy written by `evenhand solve --save`.

    Columns are found by name, in any order; numbers, dates and categories are read as in the table
    that the policy was made with, which the policy file says. What does not fit is an error.

    \b
    Example
      evenhand solve loans.csv --label repaid --good yes --group sex --save policy.json
      evenhand apply policy.json new.csv --out decisions.csv

    A mixture decides with a coin: `probability` is that of being accepted, `decision` (1 or 0) is
    the draw with --seed.

    With --reasons each person who is not accepted gets the columns that speak most against them,
    compared with all people of --reference: exactly for thresholds, stumps and linear rules; for
    models as estimates, whose error the column `reasons_error` says. evenhand explain says more
    about one person, and how shares are computed.
    """
    from evenhand.evaluation import PolicyFile

    if not reasons and (words is not None or reference is not None):
        raise InvalidInput(
            "--words and --reference belong to --reasons.",
            hint="add --reasons.",
            argument="reasons",
        )

    file = PolicyFile.read(policy)
    frame = read_rows(data, **{**file.reading, **reading.given()})
    if Path(data).resolve() == out.resolve():
        raise InvalidInput(f"--out {out} is the table itself.", hint="name another file.")
    groups, known = groups_of(file, frame, group, drop_missing, unseen)
    ready = prepare(frame.where(known), file.recipe, drop_missing=drop_missing, unseen=unseen)
    complete = known.copy()
    complete[known] = ready.complete
    groups = None if groups is None else groups[complete]
    chance = file.policy.acceptance(ready.features, groups)
    accepted = np.random.default_rng(seed).random(len(chance)) < chance
    said = None
    warnings: list[Note] = []
    if reasons:
        from evenhand.cli.explain import (
            error_cell,
            explainer,
            reasons_cell,
            sensitive_columns,
            without_reasons,
        )

        asked = explainer(
            file,
            ready.features,
            Path(data).name,
            words=words,
            reference=reference,
            reading=reading,
            seed=seed,
        )
        # Nobody is told a change here: 1 asks for none.
        asked = replace(asked, above=1.0)
        rejected = np.flatnonzero(~accepted).tolist()
        found = asked.explained(ready.features, groups, rejected)
        warnings = [*without_reasons(found), *sensitive_columns(found, most_reasons)]
        said = [("", "")] * len(accepted)
        for at, one in zip(rejected, found, strict=True):
            said[at] = (reasons_cell(one, most_reasons), error_cell(one))
    names = write_decisions(frame, complete, chance, accepted, out, said)
    left_out = many_left_out(int((~complete).sum()), len(frame))
    notes = (*frame.notes, *ready.notes, *left_out, *warnings)
    figures = {
        "policy": file.source,
        "table": frame.source,
        "people": len(frame),
        "decided": len(chance),
        "accepted": int(accepted.sum()),
        "expected_accepted": float(chance.sum()),
        "seed": seed,
        "columns": list(names),
        "notes": [str(note) for note in notes],
        "out": str(out),
    }
    if emit(document, figures):
        return
    screen = console()
    screen.print(heading(f"{frame.source}: {counted(len(frame))}, policy {file.source}"))
    show_lines(screen, [note_line(note) for note in notes])
    lines = [
        f"  decided about {len(chance):,}: {int(accepted.sum()):,} accepted "
        f"(expected {chance.sum():,.1f}), seed {seed}",
        f"\nDecisions: {out} (columns {joined(names)} are new)",
    ]
    show_lines(screen, lines)


def groups_of(
    file: "PolicyFile", frame: Frame, name: str | None, drop: bool, unseen: Unseen
) -> "tuple[GroupArray | None, BoolArray]":
    """The groups, where the policy may look at them, and who has one."""
    if not file.uses_group:
        return None, np.ones(len(frame), dtype=np.bool_)
    column = name or file.group or "group"
    frame, _ = frame.with_joined(column, [column])
    if MISSING_VALUE in file.groups:
        frame = with_missing_group(frame, column)
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
    frame: Frame,
    complete: "BoolArray",
    chance: "FloatArray",
    accepted: "BoolArray",
    path: Path,
    reasons: list[tuple[str, str]] | None = None,
) -> tuple[str, ...]:
    """The table with two or four more columns, whose names are returned."""
    taken = set(frame.columns)
    added: tuple[str, ...] = ("probability", "decision")
    if reasons is not None:
        added = (*added, "reasons", "reasons_error")
    names = tuple(
        next(name for name in (base, *(f"{base}.{i}" for i in range(2, 99))) if name not in taken)
        for base in added
    )
    answers = iter(
        zip(
            chance.tolist(),
            accepted.astype(int).tolist(),
            *(() if reasons is None else zip(*reasons, strict=True)),
            strict=True,
        )
    )
    columns = [column.texts for column in frame.columns.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*frame.columns, *names])
        for row, decided in zip(zip(*columns, strict=True), complete.tolist(), strict=True):
            cells = ["" if cell is None else cell for cell in row]
            writer.writerow([*cells, *(next(answers) if decided else [""] * len(names))])
    return names


# evenhand test


@click.command("test")
@click.argument("policy", metavar="POLICY.JSON")
@click.argument("data", metavar="HOLDOUT")
@click.option("--label", metavar="COL", help="Column with the outcome.  [as in POLICY]")
@click.option("--good", metavar="A,B", help="The good outcome, or several.  [as in POLICY]")
@click.option("--bad", metavar="A,B", type=COMMA_LIST, help="The bad outcomes, if several.")
@click.option("--group", metavar="COL", help="Column with the group.  [as in POLICY]")
@click.option(
    "--groups", metavar="A,B", type=COMMA_LIST, help="Keep only the rows of these groups."
)
@rates_option(
    None,
    "What to measure, and what --gate judges; may be given several times.  [default: all are "
    "measured, those that POLICY limits are judged]",
)
@click.option("--limit", type=Share("[0, 1]"), help="The limit of the gap.  [as in POLICY]")
@click.option(
    "--delta",
    type=Share("(0, 1)"),
    default=0.05,
    help="All intervals hold at once with probability 1 - delta.",
)
@unseen_option
@click.option("--drop-missing", is_flag=True, help="Leave out rows that lack a value or a group.")
@click.option("--drop-unlabelled", is_flag=True, help="Leave out people without an outcome.")
@gate_options
@telling_options
@file_options
def test(
    policy: str,
    data: str,
    label: str | None,
    good: str | None,
    bad: tuple[str, ...] | None,
    group: str | None,
    groups: tuple[str, ...] | None,
    rates: tuple[str, ...],
    limit: float | None,
    delta: float,
    unseen: Unseen,
    drop_missing: bool,
    drop_unlabelled: bool,
    gating: Gating,
    telling: Telling,
    reading: FileOptions,
) -> None:
    """Test a policy written by `evenhand solve --save` on people whose outcomes are all known.

    Rates, gaps and cost come with exact intervals, which hold if these people had no part in
    choosing the policy and were drawn independently.

    \b
    Example
      evenhand solve loans.csv --label repaid --good yes --group sex --save policy.json
      evenhand test policy.json holdout.csv

    \b
    Which command measures what
      test      a policy of ours on new people, all outcomes known
      measure   decisions that were made, by whatever means; outcomes may be missing
      evaluate  what another policy would have cost, from a log with probabilities
    """
    from evenhand.evaluation import PolicyFile, measure_policy

    file = PolicyFile.read(policy)
    people, source, notes = read_people(
        file,
        data,
        reading,
        label=label,
        good=good,
        bad=bad or (),
        group=group,
        groups=groups or (),
        unseen=unseen,
        drop_missing=drop_missing,
        drop_unlabelled=drop_unlabelled,
    )
    if limit is None:
        limit = 0.05 if file.limit is None else file.limit
    opened = gating.open(delta, data, policy)
    measured = measure_policy(
        file.policy,
        people,
        rates=rates or ("fpr", "fnr", "selection"),
        prices=file.prices,
        delta=opened.delta,
    )
    if not rates:
        measured = judged_by(file, measured)
    verdict = opened.judge(measured, limit)
    result = measured.result(limit)
    before = file.cost
    facts = {
        **result.facts,
        "cost on the table it was chosen on": before and Amount(before, "cost"),
    }
    telling.tell(
        replace(result, facts=facts, policy=tuple(file.policy.describe(file.columns).splitlines())),
        title=f"{file.source}, tested on {source}",
        asked={
            "policy": file.source,
            "SHA-256 of the policy": fingerprint(policy),
            "table": source,
            "SHA-256 of the table": fingerprint(data),
            "rates": tuple(rate.symbol for rate in measured.rates),
            "limit": limit,
            "rates that are limited": tuple(rate.symbol for rate in measured.rates if rate.asked),
            "delta": opened.delta,
        },
        notes=notes,
    )
    leave(verdict)


def limited_by(file: "PolicyFile") -> tuple[str, ...]:
    """The symbols of the rates that a policy file limits; which they are is never guessed."""
    if not file.limited_rates:
        raise InvalidInput(
            f"{file.source} does not say which rate it limits.", hint="add --rate.", argument="rate"
        )
    return file.limited_rates


def judged_by(file: "PolicyFile", measured: "Measurement") -> "Measurement":
    """The measurement of a policy, whose gate judges the rates that the policy file limits."""
    limited = limited_by(file)
    rates = tuple(replace(rate, asked=rate.symbol in limited) for rate in measured.rates)
    return replace(measured, rates=rates)


def read_people(
    file: "PolicyFile",
    data: str,
    reading: FileOptions,
    *,
    label: str | None,
    good: str | None,
    bad: tuple[str, ...],
    group: str | None,
    groups: tuple[str, ...],
    unseen: Unseen,
    drop_missing: bool,
    drop_unlabelled: bool,
) -> tuple[LabelledSample, str, list[Note]]:
    """The new people as the policy sees them, the table's name, and what was done to it."""
    if not good:  # the policy file knows the good outcome of its own label alone
        good = file.good if label is None else None
    label = label or file.label or ""
    by = group or file.group or ""
    for name, value in (("label", label), ("group", by)):
        if not value:
            raise InvalidInput(
                f"{file.source} does not name the {name}.", hint=f"add --{name} COL.", argument=name
            )
    how = {**file.reading, **reading.given()}
    frame, _ = read_rows(data, **how).with_joined(by, [label, by])
    notes = list(frame.notes)
    if MISSING_VALUE in file.groups and by == file.group:
        frame = with_missing_group(frame, by)
    frame = chosen_groups(frame, by, groups)
    errors: list[InvalidInput] = []
    unlabelled = frame[label].missing
    if unlabelled.any() and not drop_unlabelled:
        errors.append(_missing(frame, unlabelled, f"the outcome {label!r}", "--drop-unlabelled"))
    if unlabelled.any():
        notes.append(without_label(int(unlabelled.sum()), label))
    else:
        notes += with_every_label(frame, label)
    ungrouped = frame[by].missing
    if ungrouped.any() and not drop_missing:
        errors.append(_missing(frame, ungrouped, f"the group {by!r}", "--drop-missing"))
    frame = frame.where(~(unlabelled | ungrouped))
    if not len(frame):
        raise_all([*errors, InvalidInput(f"{data} has no person with an outcome and a group.")])
    kept = frame
    with collecting(errors):
        ready = prepare(frame, file.recipe, drop_missing=drop_missing, unseen=unseen)
        kept = frame.where(ready.complete)
    with collecting(errors):
        signs, _ = two_values(kept, label, good, bad)
    raise_all(errors)
    spelled = file.spelled(str(text) for text in group_texts(kept, by, notes))
    absent = [name for name in file.groups if name not in spelled] if by == file.group else []
    if absent:
        text = f"nobody here is of the group {listed(absent)}: no gap to it is tested"
        notes.append(Note("absent group", text, group))
    sample = LabelledSample(ready.features, np.array(spelled), signs.astype(np.int64))
    notes += [*ready.notes, *many_left_out(len(unlabelled) - len(sample), len(unlabelled))]
    return sample, frame.source, [*notes, *same_table(file, frame.source)]


def same_table(file: "PolicyFile", source: str) -> list[Note]:
    """A note if the policy says that it was chosen on the table of this name."""
    name = Path(source).name
    if file.table != name:
        return []
    text = (
        f"{file.source} says that it was chosen on {name}: if these are the same people, they "
        "favour it, and what is said of it does not hold for the population"
    )
    return [Note("same table", text)]


def _missing(frame: Frame, gaps: "BoolArray", what: str, option: str) -> InvalidInput:
    return InvalidInput(
        f"{frame.source}: {what} is missing in {gaps.sum():,} of {len(gaps):,} rows.",
        hint=f"fill it in, or leave these rows out with {option}. If outcomes are known "
        "for accepted people only, see evenhand measure and evenhand evaluate.",
    )
