"""`evenhand demo`: a first look, in six parts on the built-in lending table.

The table, `data/lending.csv`, holds 1,200 invented loans with a known recipe, `make_lending_table`
with seed 2019; nobody real is in it:

    reliability z ~ N(0, 1), the same in both groups       group: 60% "a", 40% "b"
    repaid = "yes" iff  0.9 z + noise > -0.15,  noise ~ N(0, 0.75)
    credit_score     = 660 + 62 z - 38 [b] + N(0, 34)      group b has shorter credit histories
    income           = exp(10.55 + 0.22 z - 0.10 [b] + N(0, 0.38))
    debt_ratio       = logistic(-0.75 - 0.45 z - 0.15 [b] + N(0, 0.6))
    years_employed   = Gamma(2, 3.2) exp(0.18 z) (0.85 for b)
    previous_defaults ~ Poisson(exp(-1.0 - 0.75 z))

At equal reliability people of group b have lower scores: a rule that looks at the score alone
accepts more of the bad loans of group a than of group b, and fewer of group b's good ones.
"""

import os
import shutil
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli import show
from evenhand.cli.options import FOLDER, NATURAL, ColumnOptions, json_options
from evenhand.cli.problem import TableProblem, table_problem
from evenhand.cli.solved import optimality, solved
from evenhand.cli.telling import print_result
from evenhand.errors import EvenhandError

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.faircsc import FairSolution, Frontier
    from evenhand.simulation import RunRecord

LIMIT = 0.05
DELTA = 0.05
ROUNDS = 50_000
SEED = 2019
"""The run of the certified learner in the fifth part."""
COMPARED_LIMIT = 0.15
LEARNERS = (
    "certified",
    "two-phase",
    "explore-then-commit",
    "explore-then-commit-same",
    "unconstrained",
    "fair-on-gathered",
    "accept-all",
)
"""The learners of the fourth part, and their limit."""
COLUMNS = (
    "income",
    "credit_score",
    "debt_ratio",
    "years_employed",
    "previous_defaults",
    "group",
    "repaid",
)
LABEL = "repaid"
GOOD = "yes"
GROUP = "group"
TRY = (
    "evenhand solve {table} --rate fpr --rate fnr --limit 0.1",
    "evenhand frontier {table} --class linear --out linear.png",
    "evenhand compare --environment thresholds --rounds 50000 --seeds 5",
    "evenhand plan --shares a=0.6,b=0.4 --bad-rates a=0.2,b=0.3 --auc 0.76 --limit 0.05 "
    "--price-false-accept 5 --out plan.png",
)


def lending_csv() -> str:
    """The shipped table as CSV text."""
    return (resources.files("evenhand") / "data" / "lending.csv").read_text(encoding="utf-8")


def make_lending_table(seed: int = 2019, rows: int = 1200) -> str:
    """Run the recipe; with the default arguments it yields the shipped file."""
    import csv
    from io import StringIO

    import numpy as np
    from scipy.special import expit

    rng = np.random.default_rng(seed)
    b = rng.random(rows) < 0.4
    z = rng.normal(size=rows)
    repaid = 0.9 * z + rng.normal(0, 0.75, rows) > -0.15
    score = np.clip(660 + 62 * z - 38 * b + rng.normal(0, 34, rows), 300, 850).round().astype(int)
    income = np.exp(10.55 + 0.22 * z - 0.10 * b + rng.normal(0, 0.38, rows)).round(-2).astype(int)
    debt = expit(-(0.75 + 0.45 * z + 0.15 * b - rng.normal(0, 0.6, rows)))
    years = np.clip(
        rng.gamma(2, 3.2, rows) * np.exp(0.18 * z) * np.where(b, 0.85, 1.0), 0, 42
    ).round(1)
    defaults = rng.poisson(np.exp(-1.0 - 0.75 * z))
    group = np.where(b, "b", "a")
    label = np.where(repaid, "yes", "no")
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    people = zip(income, score, debt.round(3), years, defaults, group, label, strict=True)
    writer.writerows(people)
    return text.getvalue()


@click.command("demo")
@click.option(
    "--out",
    metavar="DIR",
    type=FOLDER,
    default=Path("evenhand-demo"),
    help="Folder for the table, the policy and the picture; created if need be.",
)
@click.option(
    "--seeds",
    type=NATURAL,
    default=6,
    help="Simulation runs of each learner; 0 leaves out the parts with learners.",
)
@json_options
def command(out: Path, seeds: int, document: str | Path | None) -> None:
    """Solve a lending table, draw what a limit costs, and compare learners.

    \b
    Example
      evenhand demo --out evenhand-demo

    The table is synthetic (its recipe is in evenhand/cli/demo.py); the demo needs no other data.
    """
    from evenhand.cli.frontier import parse_limits, trace
    from evenhand.cli.solve import solved_file

    out.mkdir(parents=True, exist_ok=True)
    screen = show.console(quiet=document == "-")
    took = "about a minute on two cores" if seeds else "a few seconds"
    screen.print(f"This takes {took}; everything is written to {out}.\n", markup=False)
    data = out / "lending.csv"
    policy = out / "policy.json"
    data.write_text(lending_csv(), encoding="utf-8", newline="")
    columns = ColumnOptions(label=LABEL, good=GOOD, group=GROUP)
    task = table_problem(data, columns, limit=LIMIT)
    unlimited = replace(task, limit=1.0)
    show_problem(screen, unlimited, show.solve(unlimited))
    solution = show.solve(task)
    show_answer(screen, task, solution)
    file = solved_file(task, solution).to_json()
    show.write_json(policy, file, indent=2)
    traced = trace(task, parse_limits("0:0.3:31", LIMIT))
    image = show_price(screen, task, traced, out / "frontier.png")
    paths: dict[str, Path | None] = {"the table": data, "the policy": policy, "the picture": image}
    if seeds:
        paths["the report"] = show_learning(screen, out / "learners", seeds)
        paths["the certificate"], paths["the true gap"] = show_certificate(screen, out)
    show.emit(document, {"paths": paths, "solve": show.as_json(file)})
    show_paths(screen, paths)


def _rates_in_words(task: TableProblem, solution: "FairSolution") -> str:
    rates = show.measured_rates(task, solution)["FPR"]
    return " and ".join(f"{rate:.0%} of group {group}" for group, rate in rates.items())


def show_problem(out: "Console", task: TableProblem, solution: "FairSolution") -> None:
    """What goes wrong without a limit."""
    rule = solution.policy.hypotheses[0].describe(task.table.names)
    out.print(show.heading("1. A lender, two groups, and a rule that looks reasonable\n"))
    show.show_task(out, task)
    out.print(
        f"\nThe rule with the fewest errors is: [bold]{rule}[/bold]. It errs on "
        f"{show.per_person(task, solution.cost):.1%} of the people. But look at those who would "
        f"[italic]not[/italic] repay: it gives a loan to {_rates_in_words(task, solution)}. The "
        "same mistake is made far more often in one group than in the other: a gap of "
        f"{abs(float(solution.gaps[0])):.2f}, although both groups repay equally often.\n"
    )


def show_answer(out: "Console", task: TableProblem, solution: "FairSolution") -> None:
    """The mixture within the limit."""
    from evenhand.cli.solve import solved_file

    out.print(show.heading(f"2. Now the gap may be {LIMIT:g} at most"))
    found = solved(task, solution, solved_file(task, solution))
    print_result(replace(found, answer=found.answer[:1], facts={}, beware=()), out)
    out.print(
        f"\nNow {_rates_in_words(task, solution)} get a loan although they would not repay. The "
        f"price: {show.per_person(task, solution.cost):.1%} errors. "
        f"{optimality(task, solution)} Neither rule alone would do: the limit holds for the "
        "mixture, and no decision looks at the group.\n"
    )


def show_price(out: "Console", task: TableProblem, traced: "Frontier", path: Path) -> Path | None:
    """The cost of fairness over a few limits, and the picture; without matplotlib there is none."""
    from evenhand.cli.frontier import told
    from evenhand.media import save

    out.print(show.heading("3. And other limits?"))
    some = [i for i, limit in enumerate(traced.limits) if round(float(limit) * 1000) % 50 == 0]
    few = replace(
        traced, limits=traced.limits[some], solutions=tuple(traced.solutions[i] for i in some)
    )
    whole = told(task, traced)
    tables = told(task, few).tables[:1]
    print_result(replace(whole, facts={}, tables=tables, policy=()), out)
    out.print()
    try:
        save(whole, path)
    except EvenhandError as error:
        out.print(f"No picture: {error}\n", markup=False)
        return None
    return path


def show_learning(out: "Console", folder: Path, seeds: int) -> Path | None:
    """The same lender, but the label of a rejected loan is never seen: compare, print the table,
    write the report; its path, or None where no figure can be drawn.
    """
    from evenhand.cli.compare import (
        CompareRequest,
        compare_document,
        run,
        show_comparison,
        write_report,
    )
    from evenhand.cli.simulate import Play
    from evenhand.report.pages import findings

    out.print(
        show.heading(
            "\n4. Until now every label was known. A lender never learns whether a rejected loan "
            "would have been repaid"
        )
    )
    out.print(
        "So a lender must learn from the loans it grants, and a rule that looks fair on those may "
        "not be fair on all applicants. Seven ways to learn meet 100,000 applicants of a synthetic "
        f"lender with two regions, {seeds} times each. The guarantee: no policy that is ever used "
        f"has a gap above {COMPARED_LIMIT:g}, with probability {1 - DELTA:g}.\n"
    )
    play = Play(limit=COMPARED_LIMIT, regret_gap=COMPARED_LIMIT, delta=DELTA)
    world = play.world()
    asked = CompareRequest(
        play=play,
        world=world,
        setting=play.setting(world),
        learners=LEARNERS,
        seeds=seeds,
        first_seed=0,
        jobs=os.cpu_count() or 1,
        out=folder,
    )
    comparison = run(asked)
    show_comparison(out, comparison)
    out.print()
    show.show_lines(out, [f"  - {line}" for line in findings(comparison, "false positive rate")])
    show.write_json(folder / "results.json", compare_document(comparison), indent=None)
    try:
        write_report(asked, comparison)
    except EvenhandError as error:
        out.print(f"No report: {error}", markup=False)
        return None
    return folder / "report.html"


def show_certificate(out: "Console", folder: Path) -> tuple[Path, Path | None]:
    """One run of the certified learner: print the certificate, draw the true gap below the limit;
    the paths of both (no figure without matplotlib).
    """
    from evenhand import CertifiedLearner, FalsePositiveRate, environments
    from evenhand.report import certified_run_figure, save_figure
    from evenhand.simulation import record, simulate

    out.print(
        show.heading(
            f"\n5. A guarantee with a certificate: the gap is never above {LIMIT:g}, from the "
            "first person on"
        )
    )
    out.print(
        "Accepting all applicants has no gap, so a policy that mostly does so is certified at "
        "once; as labels come in, weight moves to what was learned. One run of "
        f"{ROUNDS:,} applicants of the same lender, with the limit of {LIMIT:g}:\n"
    )
    world = environments.lending()
    learner = CertifiedLearner(world.hypotheses, FalsePositiveRate(), LIMIT, DELTA, horizon=ROUNDS)
    run = simulate(learner, world, ROUNDS, SEED, LIMIT)
    kept = record(run, world, LIMIT)
    show_milestones(out, kept)
    certificate = run.learner.certificate
    out.print()
    print_result(certificate.result(), out)
    path = folder / "certificate.json"
    picture = folder / "certified.png"
    show.write_json(path, certificate.to_json())
    try:
        save_figure(certified_run_figure(kept, LIMIT), picture)
    except EvenhandError as error:
        out.print(f"\nNo picture: {error}", markup=False)
        return path, None
    return path, picture


def show_milestones(out: "Console", kept: "RunRecord") -> None:
    """When the learned policy got its weight, what the audits took, and the largest true gap."""
    weight = kept.learned
    half = kept.rounds[weight < 0.5]
    since = f"from round {int(half[-1]):,} on" if len(half) < len(weight) else "not yet"
    first = kept.audit[0]
    last = kept.audit[-1]
    for line in (
        f"learned policy above half of the weight: {since}; at the end {weight[-1]:.0%}",
        f"audit coin: {first:.0%} of the people at first, {last:.1%} at the end",
        f"largest true gap of any policy it deployed: {kept.worst_gap:.3f}, below the limit of "
        f"{LIMIT:g} (the truth is known here, because the population is synthetic)",
    ):
        out.print(f"  {line}")


def show_paths(out: "Console", paths: dict[str, Path | None]) -> None:
    """What was written, and what to type next."""
    out.print(show.heading(f"\n{6 if 'the report' in paths else 4}. Yours to look at"))
    for name, path in paths.items():
        if path is not None:
            out.print(f"  {name + ':':<17}{path}", markup=False, soft_wrap=True)
    out.print("\nTry it yourself:")
    table = f"{paths['the table']} --label {LABEL} --good {GOOD} --group {GROUP}"
    called = program()
    for line in TRY:
        shown = line.format(table=table).replace("evenhand", called, 1)
        out.print(f"  {shown}", markup=False, soft_wrap=True)


def program() -> str:
    """How this program was called, so that its lines can be pasted: evenhand, or a path to it."""
    import sys

    started = Path(sys.argv[0])
    if started.name != "evenhand":
        return "evenhand"
    found = shutil.which("evenhand")
    if found is not None and Path(found).resolve() == started.resolve():
        return "evenhand"
    try:
        return str(started.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(started)
