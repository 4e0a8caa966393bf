"""Impact ratios equal those of two independent calculators on 1,000 random tables.

glassbox-hiring (0.1.3) and solas-ai (0.6.0) are installed into an environment of their own in a
temporary folder. Where the definitions agree, the figures are compared: rates, ratios to the
category with the largest rate, categories below 2%, and selections missing to four fifths. solas-ai
has no 2% rule of its own for a list of categories and another shortfall (to the reference's mean),
so it gets the categories that take part, and its ratios alone are compared.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evenhand.evaluation.impact_table import impact

TABLES = 1000
REQUIREMENTS = ("glassbox-hiring==0.1.3", "solas-ai==0.6.0", "pandas<3")
SCRIPT = Path(__file__).with_name("other_calculators.py")


def random_cells(rng):
    """2 to 7 categories with 5 to 2,000 people, some of them below 2%, some without selections."""
    names = [f"group {j}" for j in range(int(rng.integers(2, 8)))]
    sizes = np.exp(rng.uniform(np.log(5), np.log(2000), len(names))).astype(int)
    rates = rng.choice([0.0, 0.2, 0.25, 0.5, 0.64, 0.8, 1.0], len(names))
    rates = np.where(rng.random(len(names)) < 0.7, rng.random(len(names)), rates)
    return {
        name: [int(rng.binomial(people, rate)), int(people)]
        for name, people, rate in zip(names, sizes, rates, strict=True)
    }


def ours(cells):
    selected = np.concatenate([np.arange(people) < x for x, people in cells.values()])
    group = np.repeat(list(cells), [people for _, people in cells.values()]).tolist()
    return {row.group: row for row in impact(selected, group).rows}


@pytest.fixture(scope="module")
def calculators(tmp_path_factory):
    """The interpreter of an environment with both calculators."""
    folder = tmp_path_factory.mktemp("calculators")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the calculators cannot be installed here: {done.stderr[-300:]}")
    return python


@pytest.mark.slow
def test_figures_equal_those_of_two_calculators(calculators):
    rng = np.random.default_rng(20)
    asked, found = [], []
    for _ in range(TABLES):
        cells = random_cells(rng)
        rows = ours(cells)
        part = [name for name, row in rows.items() if not row.excluded]
        if len(part) < 2:
            continue
        best = max(part, key=lambda name: rows[name].rate)
        reference = best if rows[best].rate > 0 else None
        asked.append({"cells": cells, "part": part, "reference": reference})
        found.append(rows)
    done = subprocess.run(
        [str(calculators), str(SCRIPT)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        cwd=calculators.parent,
        env={"PATH": "/usr/bin:/bin", "HOME": str(calculators.parent)},
    )
    answers = json.loads(done.stdout)
    assert len(answers) == len(found) > 0.95 * TABLES
    ratios = excluded = missing = 0
    for rows, one, answer in zip(found, asked, answers, strict=True):
        for name, row in rows.items():
            theirs = answer["glassbox"][name]
            assert theirs["excluded"] == row.excluded
            excluded += row.excluded
            if row.excluded:
                continue
            assert theirs["rate"] == row.rate
            assert theirs["missing"] == row.more_selections
            missing += row.more_selections > 0
            # They give the reference no ratio to itself; ours is 1, as Local Law 144 prints it.
            expected = theirs["ratio"]
            if theirs["is_reference"] and one["reference"] is not None:
                expected = 1.0
            assert row.ratio == expected
            if one["reference"] is not None and name != one["reference"]:
                other = answer["solas"][name]
                assert other["rate"] == pytest.approx(row.rate, abs=1e-12)
                assert other["ratio"] == pytest.approx(row.ratio, abs=1e-12)
                ratios += 1
    # The comparison is about something: many ratios, and both rules at work.
    assert ratios > 2 * TABLES
    assert min(excluded, missing) > 300
