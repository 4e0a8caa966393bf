"""Less regret at the same promise: this version against the one before, on the same seeds and on
populations that were used for no tuning.

Full tier: 5 populations x 20 seeds in three cells. The ratio of the means of 20 lives has a
standard error of 2 to 4%; a version that is as good as the one before is told from one with .93 of
its regret.
"""

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.versions import NEW, lives, unpacked

FRESH = tuple(range(3000, 3005))
CELLS = ((10**6, 0.05), (10**6, 0.07), (10**5, 0.12))
TARGET, WORST = 0.78, 1.03


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return unpacked(tmp_path_factory.mktemp("old"))


def geometric(values):
    return float(np.exp(np.mean(np.log(values))))


def test_less_regret_than_before(old):
    """Two populations x 2 seeds, T = 1e5: below .95 in the geometric mean (the full tier finds what
    stands in docs/claims.md).
    """
    ratios = []
    for population in FRESH[:2]:
        asked = {"population": population, "rounds": 10**5, "limit": 0.12, "seeds": [0, 1]}
        before, now = lives(old, **asked), lives(NEW, **asked)
        assert (now[:, 1] <= 0.12).all()
        ratios.append(now[:, 0].mean() / before[:, 0].mean())
    assert geometric(ratios) < 0.95, ratios


@pytest.mark.claims
def test_full_less_regret(claims, workers, old):
    jobs = [
        (source, population, cell)
        for cell in CELLS
        for population in FRESH
        for source in (old, NEW)
    ]
    asked = (
        (
            source,
            {"population": population, "rounds": rounds, "limit": limit, "seeds": list(range(20))},
        )
        for source, population, (rounds, limit) in jobs
    )
    found = np.array(
        Parallel(n_jobs=workers)(delayed(lives)(source, **told) for source, told in asked)
    )
    found = found.reshape(len(CELLS), len(FRESH), 2, 20, 3)
    mean = found[..., 0].mean(axis=3)
    ratio = mean[:, :, 1] / mean[:, :, 0]
    for (rounds, limit), here in zip(CELLS, ratio, strict=True):
        claims.add(
            f"less regret: ours over the version before, T={rounds:.0e}, gamma'={limit}, "
            "5 fresh populations x 20 seeds",
            "shown; the geometric mean of all has the target",
            f"{geometric(here):.3f} (by population {', '.join(f'{value:.2f}' for value in here)})",
            True,
        )
    limits = np.array([limit for _, limit in CELLS])[:, np.newaxis, np.newaxis]
    violations = int((found[:, :, 1, :, 1] > limits + 1e-9).sum())
    holds = geometric(ratio) <= TARGET and ratio.max() <= WORST and violations == 0
    claims.add(
        "less regret: geometric mean over all 15 cells; the worst; violations in 300 lives",
        f"<= {TARGET}, <= {WORST}, 0",
        f"{geometric(ratio):.3f}, {ratio.max():.2f}, {violations}",
        holds,
    )
    seconds = found[:2, :, :, :, 2].sum(axis=(0, 1, 3))
    claims.add(
        "less regret: CPU of lives of 1e6 rounds over the version before",
        "<= 1.5",
        f"{seconds[1] / seconds[0]:.2f}",
        bool(seconds[1] <= 1.5 * seconds[0]),
    )
    assert holds
