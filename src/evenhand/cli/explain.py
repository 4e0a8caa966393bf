"""`evenhand explain`: why a policy accepts a person with this probability; also behind `apply
--reasons`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.apply import groups_of
from evenhand.cli.options import (
    COMMA_LIST,
    INPUT_FILE,
    NATURAL,
    POSITIVE,
    FileOptions,
    Share,
    Unseen,
    file_options,
    unseen_option,
)
from evenhand.cli.show import stages
from evenhand.cli.telling import Telling, fingerprint, telling_options
from evenhand.errors import InvalidInput
from evenhand.policies import Explanation, Mixture, ReasonWords
from evenhand.policies.explained import all_explained
from evenhand.policies.explanation import ROUNDING, Comparison
from evenhand.policies.reason_words import joined
from evenhand.policies.sensitive import protected_kind
from evenhand.shown import counted
from evenhand.tables import Note, prepare, read_rows, source_columns
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from evenhand.evaluation import PolicyFile
    from evenhand.words import GroupArray

NOT_BELOW = "no column is worse than in the mean of the people compared with"
SHOWN = 10
"""People who are explained in words if nobody is chosen."""


@dataclass(frozen=True, eq=False)
class Explainer:
    """What is the same for all people of a table."""

    compared: Comparison
    reference_name: str
    words: ReasonWords
    above: float | None = None
    seed: int = 0

    def explain(self, person: FloatArray, group: object = None) -> Explanation:
        """One person."""
        return self.compared.policy.explain(
            person,
            self.compared,
            group=group,
            words=self.words,
            above=self.above,
            reference_name=self.reference_name,
            seed=self.seed,
        )

    def explained(
        self, features: FloatArray, groups: "GroupArray | None", chosen: Sequence[int]
    ) -> list[Explanation]:
        """The people in these rows, with progress on stderr."""
        found = []
        with stages() as report:
            for done, at in enumerate(chosen):
                report("reasons", done, len(chosen))
                found.append(self.explain(features[at], None if groups is None else groups[at]))
        return found


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
    compared = Comparison(file.policy, rows, columns)
    return Explainer(compared, source, said, above, seed)


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
@click.option(
    "--seed",
    type=NATURAL,
    default=0,
    help="Seed of the estimates for models; shares of thresholds, stumps and linear rules are "
    "exact.",
)
@unseen_option
@telling_options
@file_options
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
    unseen: Unseen,
    telling: Telling,
    reading: FileOptions,
) -> None:
    """Explain why a policy accepts people with the probability it does.

    Each column's share is its Shapley value, compared with all people of --reference. For
    thresholds and stumps it is exact, and says by how much the column moves the probability. For
    linear rules it is exact, too, and says by how much the column moves the score of the rules
    that reject the person, in standard deviations. For models it is exact where all subsets of
    columns can be asked about, else an estimate with its standard error beside it.

    Then comes the least change, within what was observed, that raises the probability; the
    decision may still be drawn, and the text says so. A reason that names age, sex, marital status
    and the like comes with a warning.

    \b
    Example
      evenhand solve loans.csv --label repaid --good yes --group sex --save policy.json
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

    file = PolicyFile.read(policy)
    frame = read_rows(data, **{**file.reading, **reading.given()})
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
    found = asked.explained(ready.features, groups, chosen)
    named = {at + 1: one for at, one in zip(chosen, found, strict=True)}
    source = Path(frame.source).name
    telling.tell(
        all_explained(f"Why {file.source} decides as it does", named),
        title=f"Why {file.source} decides about people of {source} as it does",
        asked={
            "policy": file.source,
            "SHA-256 of the policy": fingerprint(policy),
            "table": source,
            "reference": reference,
            "protected": protected,
            "fixed": fixed,
            "a probability above": above,
            "seed": seed,
        },
        notes=(*frame.notes, *ready.notes),
    )
    if not rows and len(chosen) < len(frame) and not telling.quiet:
        more = len(frame) - len(chosen)
        click.echo(f"\n{more:,} more people: choose them with --row.")


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


def reasons_cell(found: Explanation, most: int) -> str:
    """The principal reasons of a person who was not accepted, for a cell of a table."""
    said = [f"{one.code} {one.text}".strip() for one in found.principal_reasons(most)]
    if said:
        return "; ".join(said)
    if found.rejecting <= ROUNDING:
        return "no column speaks against the person: the draw decided"
    return NOT_BELOW


def without_reasons(found: Iterable[Explanation]) -> list[Note]:
    """A warning where rules reject people who are no worse than the mean of the reference."""
    lack = [one for one in found if not one.against and one.rejecting > ROUNDING]
    if not lack:
        return []
    have = "has" if len(lack) == 1 else "have"
    have = "has" if len(lack) == 1 else "have"
    text = (
        f"{counted(len(lack))} whom rules reject {have} no reason: no column is worse than in the "
        f"mean of {lack[0].reference}. Compare with people who are accepted: --reference"
    )
    return [Note("no reason", text)]


def error_cell(found: Explanation) -> str:
    """How exact the reasons of a person are, for a cell of a table."""
    if not found.standard_error:
        return "exact"
    error = f"shares are estimates, standard error {found.standard_error:.4f}"
    pairs = joined(f"{one} before {other}" for one, other in found.unsettled)
    return f"{error}; order not settled: {pairs}" if pairs else error


def sensitive_columns(found: Iterable[Explanation], most: int) -> list[Note]:
    """A warning for each column that is among people's reasons and names what the law protects."""
    people: Counter[str] = Counter()
    for one in found:
        people.update(reason.column for reason in one.principal_reasons(most))
    notes = []
    for name, count in people.items():
        kind = protected_kind(name)
        if kind is not None:
            text = (
                f"the reasons of {counted(count)} name {name!r}, which is {kind}. Deciding by it "
                "may be unlawful; have this checked before a reason is given"
            )
            notes.append(Note("sensitive reason", text, name))
    return notes
