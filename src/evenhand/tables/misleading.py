"""What in a table misleads: columns that tell the group or the outcome, and groups of a handful.

How much a column tells is a share of entropy,

    I(column; group) / H(group),   between 0 (nothing) and 1 (everything),

measured on the table with the column in at most BINS bins of equally many people, less the part
that chance alone is expected to show, (bins - 1)(groups - 1) / 2n.
"""

from dataclasses import dataclass
from shlex import quote

import numpy as np

from evenhand.tables.frame import Table
from evenhand.words import FloatArray, GroupArray, IntArray

BINS, MOST_ROWS = 12, 100_000
TELLS_GROUP, TELLS_LABEL = 0.25, 0.9
"""From which share on a column is said to tell the group, or the outcome."""
HANDFUL = 10
"""A group with fewer people of an outcome bends the policy for everybody."""


@dataclass(frozen=True)
class Misleading:
    """One warning about a table.

    Parameters
    ----------
    kind : {"tells the group", "tells the outcome", "a handful"}
        What misleads.
    name : str
        The column or the group.
    share : float
        The share of entropy that the column tells; for a group its share of the people.
    text : str
        The warning in words, with the way out.

    Examples
    --------
    >>> Misleading("a handful", "x", 0.01, "group 'x' has 3 people").name
    'x'
    """

    kind: str
    name: str
    share: float
    text: str


def share_told(column: FloatArray, about: GroupArray | IntArray) -> float:
    """Measure which share of the entropy of `about` a column tells.

    Parameters
    ----------
    column : array of float
        The column.
    about : array
        A group or a label for each row.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(share_told(np.array([0.0, 0.0, 1.0, 1.0] * 25), np.array(list("aabb") * 25)), 2)
    0.99
    """
    values, place = np.unique(column, return_inverse=True)
    if len(values) > BINS:
        edges = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
        place = np.searchsorted(edges, column, side="right")
    groups, belongs = np.unique(about, return_inverse=True)
    joint = np.zeros((int(place.max()) + 1, len(groups)))
    np.add.at(joint, (place, belongs), 1.0)
    n = joint.sum()
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    entropy = -float(np.sum(columns / n * np.log(np.maximum(columns, 1) / n)))
    if entropy <= 0:
        return 0.0
    expected = np.outer(rows, columns)
    seen = joint > 0
    told = float(np.sum(joint[seen] / n * np.log(joint[seen] * n / expected[seen])))
    chance = (np.count_nonzero(rows) - 1) * (len(groups) - 1) / (2 * n)
    return min(1.0, max(0.0, float(told - chance)) / entropy)


def misleading(table: Table, group_name: str = "the group") -> tuple[Misleading, ...]:
    """Find what misleads in a table.

    Parameters
    ----------
    table : Table
        The encoded table.
    group_name : str
        What the column of the group is called.

    Returns
    -------
    tuple of Misleading
        The warnings, the strongest of each kind first.

    Examples
    --------
    >>> from evenhand.tables import read_table
    >>> misleading(read_table("lending").encoded())
    ()
    """
    few = table if len(table.label) <= MOST_ROWS else table.subset(MOST_ROWS)
    raw = {made: name for name, several in table.encoded.items() for made in several}
    group, outcome = [], []
    for place, name in enumerate(table.names):
        column = few.features[:, place]
        told = share_told(column, few.group)
        if told >= TELLS_GROUP:
            text = (
                f"{name!r} tells {told:.0%} of {group_name!r} (share of its entropy, measured "
                "here); a rule that uses it looks at the group in disguise: "
                f"--leave-out {quote(raw.get(name, name))}"
            )
            group.append(Misleading("tells the group", name, told, text))
        told = share_told(column, few.label)
        if told >= TELLS_LABEL:
            text = (
                f"{name!r} tells {told:.0%} of the outcome (share of its entropy); if it is known "
                f"only afterwards, leave it out: --leave-out {quote(raw.get(name, name))}"
            )
            outcome.append(Misleading("tells the outcome", name, told, text))
    handfuls = []
    for value in sorted(set(table.group.tolist()), key=str):
        here = table.label[table.group == value]
        good, bad = int((here == 1).sum()), int((here != 1).sum())
        if min(good, bad) < HANDFUL:
            text = (
                f"group {str(value)!r} has {len(here):,} people, {good} with a good and {bad} with "
                "a bad outcome; the limit holds for it, too, and bends the policy for all "
                f"{len(table.label):,}: join it with another, or choose --groups"
            )
            share = len(here) / len(table.label)
            handfuls.append(Misleading("a handful", str(value), share, text))
    return (
        *sorted(group, key=lambda w: -w.share),
        *sorted(outcome, key=lambda w: -w.share),
        *sorted(handfuls, key=lambda w: w.share),
    )
