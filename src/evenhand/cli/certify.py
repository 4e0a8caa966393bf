"""`evenhand certify`: a certificate for the population, from one table; also behind `solve
--certify`.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from evenhand.cli import show
from evenhand.cli.gating import Gating, gate_options
from evenhand.cli.messages import warning_text
from evenhand.cli.options import (
    COMMA_LIST,
    FileOptions,
    Function,
    Share,
    Unseen,
    file_options,
    rates_option,
    unseen_option,
)
from evenhand.cli.problem import TableProblem, policy_file
from evenhand.cli.telling import Telling, fingerprint, leave, save_option, telling_options
from evenhand.errors import InvalidInput
from evenhand.fairness.certified import answer_with_use
from evenhand.fairness.rates import RATES
from evenhand.policies import Mixture
from evenhand.tables.frame import Note
from evenhand.words import Prices

if TYPE_CHECKING:
    from evenhand.evaluation import PolicyFile
    from evenhand.table_certificate import TableCertification


def certify_options(command: Function) -> Function:
    """What a certificate may ask beside the limit; each option is handed on by its name."""
    ceiling = click.option(
        "--ceiling",
        "ceilings",
        metavar="RATE=X",
        multiple=True,
        help="With a certificate: a ceiling on a rate of all people, fpr=0.1 or selection=0.2; "
        "may be given several times.",
    )
    coins = click.option(
        "--no-coins",
        is_flag=True,
        help="With a certificate: no lottery at decision time, but the cheapest single rule that "
        "passes.",
    )
    return ceiling(coins(command))


def named_ceilings(texts: tuple[str, ...]) -> dict[str, float]:
    """The ceilings of --ceiling RATE=X."""
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError as error:
            raise InvalidInput(
                f"--ceiling {text!r} is not RATE=X.", hint="--ceiling selection=0.2"
            ) from error
    return found


@click.command("certify")
@click.argument("policy", metavar="POLICY.JSON")
@click.argument("data", metavar="TABLE")
@click.option("--label", metavar="COL", help="Column with the outcome.  [as in POLICY]")
@click.option("--good", metavar="A,B", help="The good outcome, or several.  [as in POLICY]")
@click.option("--bad", metavar="A,B", type=COMMA_LIST, help="The bad outcomes, if several.")
@click.option("--group", metavar="COL", help="Column with the group.  [as in POLICY]")
@click.option(
    "--groups", metavar="A,B", type=COMMA_LIST, help="Keep only the rows of these groups."
)
@rates_option(None, "The rate whose gap is limited; repeat for several.  [as in POLICY]")
@click.option(
    "--limit",
    type=Share("(0, 1]"),
    help="The limit of the gap, fixed beforehand: delta does not cover the best of several calls.  "
    "[as in POLICY]",
)
@click.option("--delta", type=Share("(0, 1)"), default=0.05, help="Probability that it is wrong.")
@certify_options
@unseen_option
@click.option("--drop-missing", is_flag=True, help="Leave out rows that lack a value or a group.")
@click.option("--drop-unlabelled", is_flag=True, help="Leave out people without an outcome.")
@save_option
@gate_options
@telling_options
@file_options
def command(
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
    ceilings: tuple[str, ...],
    no_coins: bool,
    unseen: Unseen,
    drop_missing: bool,
    drop_unlabelled: bool,
    saved: Path | None,
    gating: Gating,
    telling: Telling,
    reading: FileOptions,
) -> None:
    """Certify a policy written by `evenhand solve --save` on people not used to choose it.

    TABLE is a file or a known table.

    The output says whether the policy is certified as it is. In both cases you get the cheapest
    certified mixture of its rules with accept-all and reject-all: constants have no gap.

    \b
    Example
      evenhand solve loans.csv --label repaid --good yes --group sex --save policy.json
      evenhand certify policy.json others.csv --limit 0.05 --save certified.json

    To fit and certify on one table: evenhand solve loans.csv ... --certify 0.05

    With --gate the exit code is about the policy as it is: 0 within, 1 above, 3 not shown.
    """
    from evenhand.cli.apply import limited_by, read_people
    from evenhand.evaluation import PolicyFile
    from evenhand.table_certificate import certify

    file = PolicyFile.read(policy)
    if not isinstance(file.policy, Mixture):
        raise InvalidInput(f"{policy} holds no mixture of rules, and only rules can be certified.")
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
    symbols = () if rates else limited_by(file)
    asked = rates or tuple(name for name in RATES if RATES[name].symbol in symbols)
    opened = gating.open(delta, data, policy)
    prices = file.prices or (1.0, 1.0)
    found = certify(
        file.policy,
        people,
        limit,
        rates=asked,
        prices=Prices(*prices),
        delta=opened.delta,
        ceilings=named_ceilings(ceilings),
        randomise=not no_coins,
    )
    found = about_the_labelled(found, notes)
    verdict = opened.judge(found, limit)
    if saved is not None:
        certified = certified_file(replace(file, limit=limit), found)
        show.write_json(saved, certified.to_json(), indent=2)
    telling.tell(
        found.result(file.columns),
        title=f"{file.source}, certified on {source}",
        asked={
            "policy": file.source,
            "SHA-256 of the policy": fingerprint(policy),
            "table": source,
            "SHA-256 of the table": fingerprint(data),
            "people": found.certified_on,
            "good outcome": f"{label or file.label} = {good or file.good}",
            "groups": people.groups,
            "rates": asked,
            "limit": limit,
            "ceilings": ceilings,
            "coins at decision time": not no_coins,
            "delta": opened.delta,
        },
        notes=notes,
        saved=saved,
    )
    leave(verdict)


def certified_file(file: "PolicyFile", found: "TableCertification") -> "PolicyFile":
    """The file of a policy that was certified."""
    claim = found.certificate.claim
    return replace(
        file,
        policy=found.policy,
        cost=found.cost,
        certificate=found.certificate,
        note=" ".join(answer_with_use(found.certificate, [claim])),
    )


def about_the_labelled(found: "TableCertification", notes: Iterable[Note]) -> "TableCertification":
    """The certificate with one more assumption where people without a label were left out."""
    left_out = [str(note) for note in notes if note.kind == "people without a label"]
    certificate = found.certificate
    assumptions = (*certificate.assumptions, *left_out)
    return replace(found, certificate=replace(certificate, assumptions=assumptions))


def present_certified(
    task: TableProblem,
    data: str,
    *,
    delta: float,
    ceilings: dict[str, float],
    randomise: bool,
    max_calls: int | None,
    seed: int,
    saved: Path | None,
    telling: Telling,
) -> None:
    """`solve --certify`: fit and certify on the table, save the policy, and say what is claimed."""
    from evenhand.table_certificate import certify

    problem = task.problem
    bad = task.sample.label == -1
    found = certify(
        task.hypotheses,
        task.sample,
        task.limit,
        rates=task.rates,
        prices=Prices(
            np.where(bad, problem.cost_if_accepted, 0.0),
            np.where(bad, 0.0, problem.cost_if_rejected),
        ),
        delta=delta,
        ceilings=ceilings,
        randomise=randomise,
        group_use=task.group_use,
        max_calls=max_calls,
        seed=seed,
    )
    found = about_the_labelled(found, task.table.notes)
    names = list(task.table.names)
    if saved is not None:
        certified = certified_file(policy_file(task, found.policy), found)
        show.write_json(saved, certified.to_json(), indent=2)
    unlabelled = any(note.kind == "people without a label" for note in task.table.notes)
    whom = "people like those with a label" if unlabelled else "the population"
    telling.tell(
        found.result(names),
        title=f"A policy fitted on {task.source}, and certified for {whom}",
        asked={
            **show.asked_of(task, data),
            "ceilings": tuple(f"{name}={top:g}" for name, top in ceilings.items()),
            "coins at decision time": randomise,
            "delta": delta,
            "seed": seed,
        },
        read=show.how_read(task),
        beware=[warning_text(one) for one in task.warnings],
        notes=show.notes_of(task),
        saved=saved,
    )
