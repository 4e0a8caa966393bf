"""`evenhand compare`: learners against each other on one population, with a table, figures and a
report.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import with_options
from evenhand.cli.playing import PLAY_OPTIONS, CompareRequest

if TYPE_CHECKING:
    from evenhand.simulate import Comparison, Tradeoff


@click.command("compare")
@with_options(
    click.option(
        "--learner",
        "learners",
        multiple=True,
        metavar="NAME[:K=V,...]",
        help="A learner, with options after a colon; repeat it.  [default: seven of them]",
    ),
    *PLAY_OPTIONS,
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        default=20,
        show_default=True,
        help="How many runs each learner gets.",
    ),
    click.option(
        "--first-seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="The seed of the first run.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes; the results do not depend on it.  [default: one per core]",
    ),
    click.option(
        "--tradeoff",
        is_flag=True,
        help="Also measure what longer exploration buys, from rounds/10 to 10 rounds.",
    ),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("evenhand-compare"),
        show_default=True,
        metavar="DIR",
        help="Folder for report.html, results.json and the figures; created if need be.",
    ),
)
def command(**options: Any) -> None:
    """Compare learners on a population whose truth is known.

    Prints a table and writes a report: one HTML page that works offline, the figures as SVG, and
    all numbers as JSON.

    \b
    Example
      evenhand compare --environment lending --learner two-phase --learner explore-then-commit-same \\
          --learner fair-on-gathered --rounds 20000 --seeds 4 --out lending

    \b
    Environments (options with --env-option KEY=VALUE)
      lending      a lender's two regions, 98 scorecards
      random       100 contexts, 204 noisy rules: seed, contexts, hypotheses
      thresholds   a score in bins, one threshold per group: bins, cuts
      lower-bound  section 4 of the paper: which (1 or 2), gap (at most 1/16)
      hard         losses T^(-1/4) apart: horizon, scale; meant for --allowed-gap 1
      scores       one continuous score, played person by person

    \b
    Learners (options after a colon: two-phase:estimator=two-sided,bound=dkw)
      two-phase                 the paper: estimator, schedule, bound, reading, exploration_rounds,
                                tradeoff_exponent
      certified                 no exploration phase, beyond the paper: bound, audit_rate
      explore-then-commit       explores T^(2/3) rounds: the same options, same_exploration
      explore-then-commit-same  explores as long as two-phase does: the same options
      exp4                      exponential weights on a net of fair pairs: the same options, grid
      unconstrained             the bandit without a limit: first_rounds
      fair-on-gathered          a limit on the gathered labels only: first_rounds
      semi-logistic             Kilbertus et al. 2020, with a fairness penalty
      explore-exploit           Keswani et al. 2024
      vw-epsilon-greedy         Vowpal Wabbit (pip install 'evenhand[vw]')
      vw-squarecb               the same with squarecb
      accept-all, uniform       no learning
    """
    from evenhand.cli.compared import promise_costs, tell, tell_tradeoff, write
    from evenhand.cli.show import console
    from evenhand.report.drawing import require

    require("matplotlib", "jinja2")  # before hours are spent on playing
    asked, out = CompareRequest.of(options), console()
    comparison, traded = run(asked)
    tell(out, comparison)
    if traded is not None:
        tell_tradeoff(out, traded)
    write(asked, comparison, traded, promise_costs(asked))
    out.print(f"\nReport: {asked.out / 'report.html'}", markup=False, soft_wrap=True)


def run(asked: CompareRequest) -> "tuple[Comparison, Tradeoff | None]":
    """Play all runs, with a bar on stderr."""
    from evenhand.cli.show import progress
    from evenhand.errors import InvalidInput
    from evenhand.simulate import compare
    from evenhand.simulate.named import make_learner

    twice = sorted({name for name in asked.learners if asked.learners.count(name) > 1})
    if twice:
        raise InvalidInput(
            f"the learner {twice[0]!r} is given twice.",
            hint="name each learner once; options make it another one.",
        )
    world = asked.play.world()
    setting = asked.play.setting(world)
    learners = {name: make_learner(name, setting) for name in asked.learners}
    asked.out.mkdir(parents=True, exist_ok=True)
    with progress("runs", len(learners) * asked.seeds) as told:
        comparison = compare(
            learners,
            world,
            asked.play.rounds,
            asked.all_seeds,
            promise=asked.play.allowed_gap,
            failure_probability=asked.play.delta,
            regret_gap=asked.play.regret_to,
            engine=asked.play.engine,
            jobs=asked.jobs,
            progress=told,
        )
    return comparison, _tradeoff(asked, world) if asked.tradeoff else None


def _tradeoff(asked: CompareRequest, world: Any) -> "Tradeoff":
    from evenhand.cli.show import progress
    from evenhand.simulate import tradeoff
    from evenhand.simulate.sweeps import EXPONENTS, HORIZONS

    setting = asked.play.setting(world)
    with progress("runs of the trade-off", len(EXPONENTS) * HORIZONS * asked.seeds) as told:
        return tradeoff(
            world,
            setting.hypotheses,
            setting.rate,
            asked.play.rounds,
            asked.all_seeds,
            comparator_gap=asked.play.comparator_gap,
            failure_probability=setting.failure_probability,
            jobs=asked.jobs,
            progress=told,
        )
