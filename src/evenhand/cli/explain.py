"""`evenhand explain`: why a policy accepts a person with this probability; also behind `apply
--reasons`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, cast

import click

from evenhand.cli.apply import groups_of
from evenhand.cli.messages import note_line
from evenhand.cli.options import (
    COMMA_LIST,
    INPUT_FILE,
    NATURAL,
    PICTURE_FILE,
    POSITIVE,
    FileOptions,
    Share,
    Unseen,
    file_options,
    json_options,
    unseen_option,
)
from evenhand.cli.show import console, emit, heading, show_lines
from evenhand.errors import InvalidInput
from evenhand.policies import Explanation, Mixture, ReasonWords, SourceColumn
from evenhand.policies.explanation import COMPARED
from evenhand.randomness import stream
from evenhand.shown import counted
from evenhand.tables import prepare, read_rows, source_columns
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from evenhand.evaluation import PolicyFile
    from evenhand.words import GroupArray

SHOWN = 10
"""People who are explained in words if nobody is chosen."""


@dataclass(frozen=True, eq=False)
class Explainer:
    """What is the same for all people of a table."""

    policy: Mixture
    columns: tuple[SourceColumn, ...]
    reference: FloatArray
    reference_name: str
    words: ReasonWords
    above: float | None = None

    def explain(self, person: FloatArray, group: object = None) -> Explanation:
        """One person."""
        return self.policy.explain(
            person,
            self.reference,
            columns=self.columns,
            group=group,
            words=self.words,
            above=self.above,
            reference_name=self.reference_name,
        )


def explainer(
    file: "PolicyFile",
    rows: FloatArray,
    source: str,
    *,
    words: Path | None,
    protected: tuple[str, ...] = (),
    fixed: tuple[str, ...] = (),
    reference: str | None = None,
    reading: FileOptions | None = None,
    above: float | None = None,
    seed: int = 0,
) -> Explainer:
    """Read the words and the people compared with; without a table of them, `rows` are compared
    among themselves.
    """
    if not isinstance(file.policy, Mixture):
        raise InvalidInput(f"{file.source} holds no mixture of rules, and only rules have reasons.")
    columns = source_columns(file.recipe)
    names = [one.name for one in columns]
    said = ReasonWords()
    if words is not None:
        said = ReasonWords.from_toml(words.read_text(encoding="utf-8"), words.name)
    group = () if file.group is None else (file.group,)
    said.require_columns(names, protected=group)
    for name in (*protected, *fixed):
        if name not in names:
            raise InvalidInput(
                f"the policy looks at no column {name!r}; it looks at {', '.join(names)}.",
                argument="protected" if name in protected else "fixed",
            )
    said = replace(
        said,
        protected=(*said.protected, *protected, *group),
        fixed=(*said.fixed, *fixed),
    )
    if reference is not None:
        given = reading or FileOptions()
        frame = read_rows(reference, **{**file.reading, **given.given()})
        rows = prepare(frame, file.recipe, drop_missing=True, unseen="ignore").features
        source = Path(reference).name
    if len(rows) < 2:
        raise InvalidInput(
            f"{source} has {len(rows)} people to compare with; reasons say how a person differs "
            "from others.",
            hint="--reference loans.csv, people whom the policy decides about.",
            argument="reference",
        )
    name = source
    if len(rows) > COMPARED:
        chosen = stream(seed, "reference of explanations").permutation(len(rows))[:COMPARED]
        name = f"{source}, drawn from {len(rows):,} with seed {seed}"
        rows = rows[chosen]
    return Explainer(file.policy, columns, rows, name, said, above)


@click.command("explain")
@click.argument("policy", metavar="POLICY.JSON")
@click.argument("data", metavar="PEOPLE")
@click.option(
    "--reference",
    metavar="TABLE",
    help="People to compare with, a file with the policy's columns.  [default: those of PEOPLE]",
)
@click.option(
    "--row",
    "rows",
    metavar="N",
    type=POSITIVE,
    multiple=True,
    help="Explain this row of PEOPLE (the first is 1); may be given several times.",
)
@click.option(
    "--words",
    metavar="WORDS.TOML",
    type=INPUT_FILE,
    help="Your own words and codes for reasons, and which columns are protected or fixed.",
)
@click.option(
    "--protected",
    metavar="A,B",
    type=COMMA_LIST,
    help="Columns that are never a reason and never proposed to change; the group always is.",
)
@click.option(
    "--fixed", metavar="A,B", type=COMMA_LIST, help="Columns of which no change is proposed."
)
@click.option(
    "--above",
    metavar="P",
    type=Share("[0, 1)"),
    help="Propose the least change with a probability above P.  [default: the present one]",
)
@click.option(
    "--group",
    metavar="COL",
    help="Column with the group, where the policy may look at it.  [default: as in POLICY]",
)
@click.option("--seed", type=NATURAL, default=0, help="Seed of the sample from a large reference.")
@click.option(
    "--figure", metavar="FILE", type=PICTURE_FILE, help="Draw the shares of the first person."
)
@unseen_option
@file_options
@json_options
def command(
    policy: str,
    data: str,
    reference: str | None,
    rows: tuple[int, ...],
    words: Path | None,
    protected: tuple[str, ...] | None,
    fixed: tuple[str, ...] | None,
    above: float | None,
    group: str | None,
    seed: int,
    figure: Path | None,
    unseen: Unseen,
    reading: FileOptions,
    document: str | Path | None,
) -> None:
    """Explain why a policy accepts people with the probability it does.

    Each column's share is its exact Shapley value: by how much it moves the probability, compared
    with the people of --reference. Then comes the least change, within what was observed, that
    raises the probability; the decision may still be drawn, and the text says so.

    \b
    Example
      evenhand solve loans.csv --label repaid --good yes --group sex --out policy.json
      evenhand explain policy.json loans.csv --row 3

    \b
    A file for --words
      fixed = ["previous_defaults"]
      [[reason]]
      column = "debt_ratio"
      direction = "high"
      code = "R07"
      text = "Debt is high in relation to income."

    Reasons for all rejected people at once: evenhand apply policy.json new.csv --reasons
    """
    from evenhand.evaluation import PolicyFile

    if figure is not None:
        from evenhand.report.drawing import require

        require("matplotlib")  # before the work, not after
    file = PolicyFile.read(policy)
    by = group or file.group or ""
    frame = read_rows(data, (by,), **{**file.reading, **reading.given()})
    groups, _ = groups_of(file, frame, group, drop=False, unseen=unseen)
    ready = prepare(frame, file.recipe, unseen=unseen)
    chosen = _chosen(rows, len(frame), frame.source)
    asked = explainer(
        file,
        ready.features,
        Path(frame.source).name,
        words=words,
        protected=protected or (),
        fixed=fixed or (),
        reference=reference,
        reading=reading,
        above=above,
        seed=seed,
    )
    found = list(_explained(asked, ready.features, groups, chosen))
    if figure is not None:
        from evenhand.report import save_figure

        save_figure(cast("Figure", found[0].plot().figure), figure)
    notes = (*frame.notes, *ready.notes)
    figures = {
        "policy": file.source,
        "table": frame.source,
        "people": [{"row": at + 1, **one.to_json()} for at, one in zip(chosen, found, strict=True)],
        "notes": [str(note) for note in notes],
        "written": {"figure": figure},
    }
    if emit(document, figures):
        return
    screen = console()
    screen.print(heading(f"{Path(frame.source).name}, policy {file.source}"))
    show_lines(screen, [note_line(note) for note in notes])
    for at, one in zip(chosen, found, strict=True):
        screen.print(heading(f"\nRow {at + 1}"))
        for line in one.describe().splitlines():
            indent = "          " if line.startswith("  ") else ""
            show_lines(screen, wrap(line, 79, subsequent_indent=indent))
    if not rows and len(chosen) < len(frame):
        more = len(frame) - len(chosen)
        show_lines(screen, ["", f"{more:,} more people: choose them with --row."])
    if figure is not None:
        click.echo(f"\nFigure: {figure}")


def _chosen(rows: tuple[int, ...], people: int, source: str) -> list[int]:
    """The places of the people who are explained."""
    if not rows:
        return list(range(min(people, SHOWN)))
    for row in rows:
        if row > people:
            raise InvalidInput(
                f"--row is {row}, and {source} has {counted(people, 'row', 'rows')}.",
                hint="the first row below the header is 1.",
                argument="row",
            )
    return [row - 1 for row in dict.fromkeys(rows)]


def _explained(
    asked: Explainer, features: FloatArray, groups: "GroupArray | None", chosen: list[int]
) -> Iterator[Explanation]:
    for at in chosen:
        yield asked.explain(features[at], None if groups is None else groups[at])


def reasons_cell(found: Explanation, most: int) -> str:
    """The principal reasons of a person who was not accepted, for a cell of a table."""
    said = [f"{one.code} {one.text}".strip() for one in found.principal_reasons(most)]
    return "; ".join(said) or "no column speaks against the person: the draw decided"
