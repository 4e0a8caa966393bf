"""`evenhand apply`: decide about the people of a new table by a policy that was found before."""

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
    UNSEEN,
    file_reading,
    option,
)
from evenhand.errors import InvalidInput
from evenhand.tables import Frame, group_texts, listed, prepare, read_frame

if TYPE_CHECKING:
    from evenhand.evaluation import PolicyFile
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
        option(
            "--drop-missing",
            "Decide nothing about rows that lack a value: their cells stay empty.",
            is_flag=True,
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
    from evenhand.cli.show import console, emit, heading, show_lines
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
