"""The built-in lending table: 1,200 invented loans with a known recipe, shipped as
`data/lending.csv`.

The recipe (`make_lending_table`, seed 2019; nobody real is in it):

    reliability z ~ N(0, 1), the same in both groups       group: 60% "a", 40% "b"
    repaid = "yes" iff  0.9 z + noise > -0.15,  noise ~ N(0, 0.75)
    credit_score     = 660 + 62 z - 38 [b] + N(0, 34)      group b has shorter credit histories, so its scores run lower
    income           = exp(10.55 + 0.22 z - 0.10 [b] + N(0, 0.38))
    debt_ratio       = logistic(-0.75 - 0.45 z - 0.15 [b] + N(0, 0.6))
    years_employed   = Gamma(2, 3.2) exp(0.18 z) (0.85 for b)
    previous_defaults ~ Poisson(exp(-1.0 - 0.75 z))

At equal reliability people of group b have lower scores: a rule that looks at the score alone
accepts more of the bad loans of group a than of group b, and fewer of group b's good ones.
"""

import csv
from collections.abc import Iterable, Sequence
from importlib import resources
from io import StringIO
from pathlib import Path

import numpy as np

SEED = 2019
ROWS = 1200
COLUMNS = (
    "income",
    "credit_score",
    "debt_ratio",
    "years_employed",
    "previous_defaults",
    "group",
    "repaid",
)
LABEL, GOOD, GROUP = "repaid", "yes", "group"


def lending_csv() -> str:
    """The shipped table as CSV text."""
    return (resources.files("evenhand") / "data" / "lending.csv").read_text(encoding="utf-8")


def write_lending_csv(path: Path) -> None:
    """Copy the shipped table to `path`."""
    path.write_text(lending_csv(), encoding="utf-8", newline="")


def make_lending_table(seed: int = SEED, rows: int = ROWS) -> str:
    """Run the recipe; with the default arguments it yields the shipped file."""
    rng = np.random.default_rng(seed)
    b = rng.random(rows) < 0.4
    z = rng.normal(size=rows)
    repaid = 0.9 * z + rng.normal(0, 0.75, rows) > -0.15
    score = np.clip(660 + 62 * z - 38 * b + rng.normal(0, 34, rows), 300, 850).round().astype(int)
    income = np.exp(10.55 + 0.22 * z - 0.10 * b + rng.normal(0, 0.38, rows)).round(-2).astype(int)
    debt = 1 / (1 + np.exp(0.75 + 0.45 * z + 0.15 * b - rng.normal(0, 0.6, rows)))
    years = np.clip(
        rng.gamma(2, 3.2, rows) * np.exp(0.18 * z) * np.where(b, 0.85, 1.0), 0, 42
    ).round(1)
    defaults = rng.poisson(np.exp(-1.0 - 0.75 * z))
    group, label = np.where(b, "b", "a"), np.where(repaid, "yes", "no")
    return _as_csv(zip(income, score, debt.round(3), years, defaults, group, label, strict=True))


def _as_csv(rows: Iterable[Sequence[object]]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return text.getvalue()
