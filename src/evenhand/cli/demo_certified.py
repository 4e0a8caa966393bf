"""The end of `evenhand demo`: one life of the certified learner, its certificate in words, and the
true gap below the limit.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from evenhand import CertifiedLearner, FalsePositiveRate, environments
from evenhand.cli.show import heading
from evenhand.errors import EvenhandError
from evenhand.report import certified_run_figure, save_figure
from evenhand.simulate import Trail, simulate, trail

if TYPE_CHECKING:
    from evenhand.fairness.certificate import Certificate

LIMIT, SURE, ROUNDS, SEED = 0.05, 0.95, 50_000, 2019


def tell_the_certificate(out: Console, folder: Path) -> tuple[Path, Path | None]:
    """Play one life, print the certificate, draw the figure; the paths of both (no figure without
    matplotlib).
    """
    out.print(
        heading(
            f"\n5. A promise that can be signed: the gap is never above {LIMIT:g}, from the first person on"
        )
    )
    out.print(
        f"Accepting everybody has no gap, so a policy that is mostly that is certified at once; as labels come in, weight moves to "
        f"what was learned. One life of {ROUNDS:,} applicants of the same lender, with the limit of {LIMIT:g}:\n"
    )
    world = environments.lending()
    learner = CertifiedLearner(
        world.hypotheses, FalsePositiveRate(), LIMIT, 1 - SURE, horizon=ROUNDS
    )
    run = simulate(learner, world, ROUNDS, SEED, LIMIT)
    followed = trail(run, world)
    assert followed is not None  # the population is discrete
    certificate: Certificate = run.learner.certificate
    _tell_milestones(out, followed, run.worst_gap)
    out.print(Text("\n" + certificate.describe()), soft_wrap=True)
    path = folder / "certificate.json"
    path.write_text(
        json.dumps(certificate.to_json(), indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    return path, _picture(out, followed, folder / "certified.png")


def _tell_milestones(out: Console, followed: Trail, worst: float) -> None:
    half = followed.rounds[followed.weight < 0.5]
    since = f"from round {int(half[-1]):,} on" if len(half) < len(followed.weight) else "not yet"
    out.print(
        f"  learned policy above half of the weight: {since}; at the end {followed.weight[-1]:.0%}"
    )
    out.print(
        f"  audit coin: {followed.audit[0]:.0%} of the people at first, {followed.audit[-1]:.1%} at the end"
    )
    out.print(
        f"  largest true gap of any policy it deployed: {worst:.3f}, below the limit of {LIMIT:g} (the truth is known here, "
        "because the population is invented)"
    )


def _picture(out: Console, followed: Trail, path: Path) -> Path | None:
    try:
        save_figure(certified_run_figure(followed, LIMIT), path)
    except EvenhandError as error:
        out.print(f"\nNo picture: {error}", markup=False)
        return None
    return path
