"""What is said of a certificate: the claim, how the gaps stand, and what lies outside of it."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evenhand.fairness.acceptance import MEANING, acceptance_table
from evenhand.findings import size_of
from evenhand.result import (
    Amount,
    Bar,
    Between,
    Cell,
    Intervals,
    Result,
    Table,
    Verdict,
    column,
    with_rows,
)

if TYPE_CHECKING:
    from evenhand.fairness.certificate import Certificate, GapInterval

WHO = "Whom it accepts, of the people who certified it"
DRAWN = "Line: where the gap lies in the population. Dashed: the limit."


def certified(record: "Certificate") -> Result:
    """The result of a certificate; a suspended one claims nothing."""
    stands = record.status == "certified"
    findings = tuple(gap.finding(record.limit) for gap in record.gaps)
    tables = [gaps_table("gaps", "Gaps of the certified policy", record.gaps, record.limit)]
    if record.acceptance is not None:
        tables.append(acceptance_table(record.acceptance, WHO))
    tables += [ceilings_table(record), counts_table(record), _outside(record), _computed(record)]
    reason = f"SUSPENDED: {record.reason}. No claim stands."
    return Result(
        kind="certificate",
        title="Certificate of a policy" if record.scope == "table" else "Certificate of a run",
        record=record,
        answer=tuple(answer_with_use(record, [record.claim])) if stands else (reason,),
        verdict=Verdict(findings, record.delta) if stands and findings else None,
        claimed=findings if stands else None,
        facts=_facts(record),
        tables=with_rows(*tables),
        figures=(Intervals("Gaps and their limit", *drawn(record.gaps, record.limit)),),
        beware=tuple(f"{one.describe()}." for one in record.suspensions),
        assumptions=tuple(record.assumptions),
    )


def answer_with_use(record: "Certificate", answer: Sequence[str]) -> list[str]:
    """An answer with the verdict about use and whom the policy accepts of the people who certified
    it; they stand first where something speaks against the use of the policy.
    """
    if record.acceptance is None:
        return list(answer)
    said = [*record.acceptance.sentences, MEANING]
    return [*answer, *said] if record.acceptance.useful else [*said, *answer]


def drawn(
    gaps: Iterable["GapInterval"], limit: float, prefix: str = ""
) -> tuple[str, tuple[Bar, ...], tuple[float, float], float, str]:
    """What `Intervals` takes after its title."""
    bars = tuple(
        Bar(f"{prefix}{gap.rate}: {gap.group} minus {gap.reference}", None, *_ends(gap))
        for gap in gaps
    )
    return "gap of the rate between two groups", bars, (-limit, limit), 0.0, DRAWN


def _ends(gap: "GapInterval") -> tuple[float, float]:
    """The interval; nothing is known where no value is consistent with the data."""
    return (-1.0, 1.0) if size_of(gap.low, gap.high) == (0.0, 1.0) else (gap.low, gap.high)


def gaps_table(key: str, title: str, gaps: Iterable["GapInterval"], limit: float) -> Table:
    """Each gap, between which values it lies, and how it stands to the limit."""
    return Table.of(
        key,
        title,
        gaps,
        column("rate"),
        column("group", take=lambda gap: str(gap.group)),
        column("against", take=lambda gap: str(gap.reference)),
        column(
            "gap", "gap in the population", "difference", lambda gap: Between(gap.low, gap.high)
        ),
        column("status", f"at most {limit:g}", "status", lambda gap: gap.stands(limit)),
    )


def ceilings_table(record: "Certificate") -> Table:
    """The rates of all people that have a ceiling."""
    return Table.of(
        "ceilings",
        "Ceilings",
        record.ceilings,
        column("rate"),
        column("high", "of all people at most", "weight"),
        column("ceiling", "allowed", "ratio"),
    )


def counts_table(record: "Certificate") -> Table:
    """The people behind the certificate."""
    return Table.of(
        "evidence",
        "Who certified it",
        record.counts,
        column("group", take=lambda one: str(one.group)),
        column("outcome", take=lambda one: "good" if one.label > 0 else "bad"),
        column("people", "people", "count"),
    )


def _outside(record: "Certificate") -> Table:
    rows: list[tuple[str, str, int]] = [
        ("outside the certificate", _group(one.group), one.people) for one in record.outside
    ]
    for what, counts in (
        ("overruled by people, counted as drawn", record.overruled),
        ("group reported after the draw", record.late_groups),
    ):
        for count in counts:
            drawn = "accept" if count.drawn_accept else "reject"
            rows.append((f"{what}: {drawn}", _group(count.group), count.people))
    if record.erased:
        rows.append(("erased, counted at its worst", "", record.erased))
    return Table.of(
        "outside",
        "Beside the claim",
        rows,
        column("what", take=lambda row: row[0]),
        column("group", take=lambda row: row[1]),
        column("people", "people", "count", lambda row: row[2]),
    )


def _group(name: object) -> str:
    return "unknown" if name is None else str(name)


def _facts(record: "Certificate") -> dict[str, Cell]:
    first, stop = record.window
    until = "the policy changes or the certificate is suspended"
    if record.valid_until is not None:
        until = f"round {record.valid_until:,}, unless suspended before"
    facts: dict[str, Cell] = {"limit": record.limit}
    if record.accepted is not None:
        low, high = record.accepted
        alone = record.accept_at_most is not None and record.accept_at_least is None
        name = "accepted, of the population"
        share = Amount(high if alone else Between(low, high), "weight")
        facts[f"{name}, at most" if alone else name] = share
    facts |= {
        "delta": record.delta,
        "booked of delta": record.spent,
        "evidence": f"rounds {first:,} to {stop - 1:,}" if stop > first else "none yet",
        "valid until": until,
    }
    return facts


def _computed(record: "Certificate") -> Table:
    return Table.of_names(
        "computed",
        "How it was computed",
        {
            "bound": record.bound,
            **{name: str(value) for name, value in record.bound_params.items()},
            "policy": f"sha256 {record.policy}",
            **{f"model {n}": f"sha256 {one}" for n, one in enumerate(record.models, 1)},
            "columns": record.columns or None,
            "schema": record.schema and f"sha256 {record.schema}",
        },
    )
