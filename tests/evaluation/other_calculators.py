"""Runs in an environment of its own: the impact ratios of glassbox-hiring and of solas-ai.

Reads tables {category: [selected, people]} as JSON from standard input, and prints for each table
and calculator {category: figures}. Nothing of evenhand is imported here.
"""

import json
import sys
import warnings

warnings.simplefilter("ignore")


def glassbox(cells: dict[str, list[int]]) -> dict[str, dict[str, object]]:
    """29 CFR 1607.4(D) and the 2% rule: ratio to the largest rate, selections missing to 4/5."""
    from glassbox.audit.impact import LL144_MIN_SHARE, adverse_impact

    outcomes = {name: (selected, people) for name, (selected, people) in cells.items()}
    report = adverse_impact(outcomes, min_share=LL144_MIN_SHARE)
    found: dict[str, dict[str, object]] = {name: {"excluded": True} for name, _ in report.excluded}
    for one in report.groups:
        found[one.name] = {
            "excluded": False,
            "rate": one.selection_rate,
            "ratio": one.impact_ratio,
            "is_reference": one.is_reference,
            "missing": one.shortfall,
        }
    return found


def solas(cells: dict[str, list[int]], reference: str) -> dict[str, dict[str, object]]:
    """The adverse impact ratio of each category to a named one, from one row per person."""
    import numpy as np
    import pandas as pd
    import solas_disparity

    names = list(cells)
    sizes = [people for _, people in cells.values()]
    belongs = np.repeat(np.arange(len(names)), sizes)
    outcome = np.concatenate(
        [np.arange(people) < selected for selected, people in cells.values()]
    ).astype(int)
    groups = pd.DataFrame({name: (belongs == j).astype(int) for j, name in enumerate(names)})
    others = [name for name in names if name != reference]
    found = solas_disparity.adverse_impact_ratio(
        group_data=groups,
        protected_groups=others,
        reference_groups=[reference] * len(others),
        group_categories=["category"] * len(others),
        outcome=pd.Series(outcome),
        air_threshold=0.8,
        percent_difference_threshold=0.0,
    )
    rows = found.summary_table
    return {
        name: {
            "rate": float(rows.loc[name, "Percent Favorable"]),
            "ratio": float(rows.loc[name, "AIR"]),
        }
        for name in others
    }


def main() -> None:
    """Answer every table."""
    answers = []
    for one in json.load(sys.stdin):
        answer = {"glassbox": glassbox(one["cells"])}
        if one["reference"] is not None:
            kept = {name: one["cells"][name] for name in one["part"]}
            answer["solas"] = solas(kept, one["reference"])
        answers.append(answer)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
