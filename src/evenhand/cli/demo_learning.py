"""The last act of `evenhand demo`: the same lender, but the label of a refused loan is never seen."""

from pathlib import Path

from rich.console import Console

from evenhand.cli.compare import run
from evenhand.cli.compared import tell, write
from evenhand.cli.playing import CompareRequest, Play
from evenhand.cli.show import heading
from evenhand.errors import EvenhandError
from evenhand.report.findings import findings
from evenhand.simulate import Comparison

LEARNERS = (
    "certified",
    "two-phase",
    "explore-then-commit",
    "explore-then-commit-same",
    "unconstrained",
    "fair-on-gathered",
    "accept-all",
)
PROMISE = 0.15


def request(folder: Path, seeds: int, jobs: int) -> CompareRequest:
    """100,000 applicants; regret against the best policy that keeps the promise."""
    play = Play(
        environment="lending",
        env_options=(),
        allowed_gap=PROMISE,
        comparator_gap=0.02,
        regret_gap=PROMISE,
        delta=0.05,
        rate="fpr",
        rounds=100_000,
        engine="auto",
    )
    return CompareRequest(play, LEARNERS, seeds, 0, jobs, tradeoff=False, out=folder)


def tell_the_learning(out: Console, folder: Path, seeds: int, jobs: int) -> Path | None:
    """Compare, print the table, write the report; its path, or None where no figure can be drawn."""
    out.print(
        heading(
            "\n4. Until now every label was known. A lender never learns whether a refused loan would have been repaid"
        )
    )
    out.print(
        "So a lender must learn from the loans it grants, and a rule that looks fair on those may not be fair on everybody. Seven ways to "
        f"learn meet 100,000 applicants of an invented lender with two regions, {seeds} times each. The promise: no policy "
        f"that is ever used has a gap above {PROMISE:g}, with probability 0.95.\n"
    )
    asked = request(folder, seeds, jobs)
    comparison, _ = run(asked)
    tell(out, comparison)
    out.print()
    for line in findings(comparison, "false positive rate"):
        out.print(f"  - {line}", markup=False)
    return _report(out, asked, comparison)


def _report(out: Console, asked: CompareRequest, comparison: Comparison) -> Path | None:
    try:
        write(asked, comparison, None)
    except EvenhandError as error:
        out.print(f"No report: {error}", markup=False)
        return None
    return asked.out / "report.html"
